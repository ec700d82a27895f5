//! 8.1: how requests and responses are framed; content-length and trailers.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [framing(), answered_early(), lengths(), trailers()].into_iter().flatten().collect()
}

fn framing() -> Vec<Case> {
    cases! {
        case("8.1", "a request is HEADERS and DATA") => send(unary(1, "a")), echo(1, "a");
        case("8.1", "the pieces of a request may arrive by themselves") =>
            send(headers(1, 0, &CALL)), nothing(), send(data(1, 0, &message("abc")[..2])), nothing(),
            send(data(1, 0, &message("abc")[2..7])), nothing(),
            send(data(1, END_STREAM, &message("abc")[7..])), echo(1, "abc");
        case("8.1", "requests may be interleaved") =>
            send([headers(1, 0, &CALL), headers(3, 0, &CALL), headers(5, 0, &CALL)]),
            send([data(3, 0, &message("b")[..1]), data(1, 0, &message("a")[..4])]),
            send([data(5, END_STREAM, message("c")), data(3, END_STREAM, &message("b")[1..])]),
            send(data(1, END_STREAM, &message("a")[4..])), echo(1, "a"), echo(3, "b"), echo(5, "c");
        case("8.1", "HEADERS in the middle of a request are a stream error") =>
            send([headers(1, 0, &CALL), headers(1, 0, &[("x", "y")])]), reset(1, PROTOCOL_ERROR), usable();
        case("8.1", "a second request on one stream is a stream error") =>
            send([headers(1, 0, &CALL), headers(1, END_STREAM, &CALL)]), reset(1, PROTOCOL_ERROR), usable();
        case("8.1", "a response that is complete before its request asks for no more of it after a while") =>
            send(headers(1, 0, &with(":method", "GET"))), http(1, "405"), released(1),
            send([data(1, 0, "x"), data(1, END_STREAM, "y")]), usable();
        case("8.1", "a call that is refused before its request is complete asks for no more of it") =>
            send([headers(1, 0, &CALL), data(1, 0, [9, 0, 0, 0, 0])]), status(1, INTERNAL), released(1),
            usable();
        case("8.1", "a response that is complete with its request resets nothing") =>
            send(headers(1, END_STREAM, &with(":method", "GET"))), http(1, "405"), usable();
    }
}

/// The rest of a request after its response: it is read on for a while, so that faults are found.
fn answered_early() -> Vec<Case> {
    let answered = |name: &str| case("8.1", name).send(headers(1, 0, &with(":method", "GET"))).http(1, "405");
    cases! {
        answered("a request that ends after its response resets nothing") =>
            send([data(1, 0, "x"), data(1, END_STREAM, "y")]), nothing(), send(data(1, 0, "z")),
            reset(1, STREAM_CLOSED), usable();
        answered("trailers may end a request after its response") =>
            send(headers(1, END_STREAM, &[("x", "y")])), nothing(), usable();
        answered("a request is read up to a bound after its response") =>
            send(data(1, 0, [7; 16_000]).repeat(4)), nothing(), send(data(1, 0, [7; 16_000]).repeat(2)),
            reset(1, NO_ERROR), usable();
        answered("trailers with a pseudo-header after the response are a stream error") =>
            send(headers(1, END_STREAM, &[(":path", "/")])), reset(1, PROTOCOL_ERROR), usable();
        answered("trailers without END_STREAM after the response are a stream error") =>
            send(headers(1, 0, &[("x", "y")])), reset(1, PROTOCOL_ERROR), usable();
        answered("WINDOW_UPDATE of 0 after the response is a stream error") =>
            send(window_update(1, 0)), reset(1, PROTOCOL_ERROR), usable();
        answered("a window that becomes too large after the response is a stream error") =>
            send(window_update(1, 0x7fff_ffff)), reset(1, FLOW_CONTROL_ERROR), usable();
        case("8.1", "a body that is longer than announced is a stream error after the response too") =>
            send([headers(1, 0, &and(&[("content-length", "6")])), data(1, 0, [9, 0, 0, 0, 0])]),
            status(1, INTERNAL), send(data(1, 0, "xy")), reset(1, PROTOCOL_ERROR), usable();
        case("8.1", "a body that is shorter than announced is a stream error after the response too") =>
            send([headers(1, 0, &and(&[("content-length", "7")])), data(1, 0, [9, 0, 0, 0, 0])]),
            status(1, INTERNAL), send(data(1, END_STREAM, "x")), reset(1, PROTOCOL_ERROR), usable();
        case("8.1", "requests that are read after their responses count among the open streams") =>
            limits(|limits| limits.max_streams = 2),
            send([1, 3, 5].map(|stream| headers(stream, 0, &with(":method", "GET"))).concat()),
            http(1, "405"), http(3, "405"), reset(5, REFUSED_STREAM), send(data(1, END_STREAM, "")),
            send(unary(7, "a")), echo(7, "a"), send(reset(3, CANCEL)), usable();
        answered("nothing is read on when the connection is to end") => shut_down(), reset(1, NO_ERROR),
            goaway(0x7fff_ffff, NO_ERROR), ping(), goaway(1, NO_ERROR), closed();
    }
}

/// 8.1.1: a request whose content-length is not that of its DATA is malformed.
fn lengths() -> Vec<Case> {
    let of = |name: &str, lengths: &[&'static str]| {
        let lengths: Vec<Pair<'_>> = lengths.iter().map(|length| ("content-length", *length)).collect();
        case("8.1.1", name).send(headers(1, 0, &and(&lengths)))
    };
    let body = || data(1, END_STREAM, message("hello"));
    cases! {
        of("the right content-length", &["10"]) => send(body()), echo(1, "hello");
        of("content-length with zeros in front", &["0010"]) => send(body()), echo(1, "hello");
        of("content-length over several frames", &["10"]) =>
            send([data(1, 0, &message("hello")[..3]), data(1, END_STREAM, &message("hello")[3..])]),
            echo(1, "hello");
        of("padding is no part of content-length", &["10"]) =>
            send(data(1, END_STREAM | PADDED, [&[4][..], &message("hello"), &[0; 4]].concat())),
            echo(1, "hello");
        of("content-length with trailers", &["10"]) =>
            send([data(1, 0, message("hello")), headers(1, END_STREAM, &[("x", "y")])]), echo(1, "hello");
        of("more DATA than content-length is malformed", &["9"]) =>
            send(body()), reset(1, PROTOCOL_ERROR), usable();
        of("more DATA than content-length is malformed before its end", &["3"]) =>
            send(data(1, 0, message("hello"))), reset(1, PROTOCOL_ERROR), usable();
        of("less DATA than content-length is malformed", &["11"]) =>
            send(body()), reset(1, PROTOCOL_ERROR), usable();
        of("less DATA than content-length is malformed with an empty end", &["11"]) =>
            send([data(1, 0, message("hello")), data(1, END_STREAM, "")]), reset(1, PROTOCOL_ERROR), usable();
        of("less DATA than content-length is malformed with trailers", &["11"]) =>
            send([data(1, 0, message("hello")), headers(1, END_STREAM, &[("x", "y")])]),
            reset(1, PROTOCOL_ERROR), usable();
        case("8.1.1", "content-length without DATA is malformed") =>
            send(headers(1, END_STREAM, &and(&[("content-length", "1")]))), reset(1, PROTOCOL_ERROR),
            usable();
        case("8.1.1", "content-length 0 without DATA is well-formed") =>
            send(headers(1, END_STREAM, &and(&[("content-length", "0")]))), status(1, UNIMPLEMENTED);
        of("content-length 0 with DATA is malformed", &["0"]) =>
            send(body()), reset(1, PROTOCOL_ERROR), usable();
        of("content-length twice, alike", &["10", "10"]) => send(body()), echo(1, "hello");
        of("content-length twice, different, is malformed", &["10", "11"]) =>
            reset(1, PROTOCOL_ERROR), usable();
        of("content-length that is no number is malformed", &["ten"]) => reset(1, PROTOCOL_ERROR), usable();
        of("content-length with a sign is malformed", &["+10"]) => reset(1, PROTOCOL_ERROR), usable();
        of("negative content-length is malformed", &["-1"]) => reset(1, PROTOCOL_ERROR), usable();
        of("empty content-length is malformed", &[""]) => reset(1, PROTOCOL_ERROR), usable();
        of("content-length in hexadecimal is malformed", &["0xa"]) => reset(1, PROTOCOL_ERROR), usable();
        of("content-length with a list is malformed", &["10, 10"]) => reset(1, PROTOCOL_ERROR), usable();
        of("content-length larger than any number is malformed", &["99999999999999999999"]) =>
            reset(1, PROTOCOL_ERROR), usable();
    }
}

fn trailers() -> Vec<Case> {
    let begun =
        |name: &str| case("8.1", name).send([headers(1, 0, &CALL), data(1, 0, message("a"))].concat());
    cases! {
        begun("trailers end a request") => send(headers(1, END_STREAM, &[("x-checksum", "1")])), echo(1, "a");
        begun("trailers may be empty") => send(frame(HEADERS, END_HEADERS | END_STREAM, 1, "")), echo(1, "a");
        begun("trailers without END_STREAM are a stream error") =>
            send(headers(1, 0, &[("x", "y")])), reset(1, PROTOCOL_ERROR), usable();
        begun("trailers with a pseudo-header field are malformed") =>
            send(headers(1, END_STREAM, &[(":method", "POST")])), reset(1, PROTOCOL_ERROR), usable();
        begun("trailers with an upper-case name are malformed") =>
            send(headers(1, END_STREAM, &[("X", "y")])), reset(1, PROTOCOL_ERROR), usable();
        begun("trailers with a connection-specific field are malformed") =>
            send(headers(1, END_STREAM, &[("connection", "close")])), reset(1, PROTOCOL_ERROR), usable();
        begun("DATA behind trailers is a stream error") =>
            send([headers(1, END_STREAM, &[("x", "y")]), data(1, 0, "x")]), reset(1, STREAM_CLOSED), usable();
        begun("trailers behind trailers are a stream error") =>
            send(headers(1, END_STREAM, &[("x", "y")]).repeat(2)), reset(1, STREAM_CLOSED), usable();
        case("8.1", "trailers may follow HEADERS without DATA") =>
            send([headers(1, 0, &CALL), headers(1, END_STREAM, &[("x", "y")])]), status(1, UNIMPLEMENTED);
    }
}
