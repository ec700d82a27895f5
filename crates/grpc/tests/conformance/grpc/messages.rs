//! Length-Prefixed-Message: how messages are framed, and how many a method takes.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [framing(), counts(), streaming(), router()].into_iter().flatten().collect()
}

const STREAM: &str = "/echo.Echo/Stream";

fn sent(name: &str, path: &str, bytes: impl AsRef<[u8]>) -> Case {
    case("Length-Prefixed-Message", name)
        .send([headers(1, 0, &call_of(path)), data(1, END_STREAM, bytes)].concat())
}

fn unary_of(name: &str, bytes: impl AsRef<[u8]>) -> Case {
    sent(name, "/echo.Echo/Unary", bytes)
}

fn framing() -> Vec<Case> {
    let hello = message("hello");
    let (first, ends) = (headers(1, 0, &CALL), data(1, END_STREAM, ""));
    let mut cases: Vec<Case> = (1..hello.len())
        .map(|at| {
            case("Length-Prefixed-Message", format!("a message may be split between frames after {at} bytes"))
                .send([first.clone(), data(1, 0, &hello[..at])].concat())
                .nothing()
                .send(data(1, END_STREAM, &hello[at..]))
                .echo(1, "hello")
        })
        .collect();
    cases.extend(cases! {
        case("Length-Prefixed-Message", "a message may be split into single bytes") =>
            send(first.clone()), send(hello.iter().flat_map(|byte| data(1, 0, [*byte])).collect::<Vec<u8>>()),
            send(ends.clone()), echo(1, "hello");
        unary_of("a message may be empty", message("")) => echo(1, "");
        unary_of("a message may have any bytes", message([0, 255, 128, 10, 13])) =>
            answer(1, message([0, 255, 128, 10, 13]));
        unary_of("a message without its end is INTERNAL", &message("hello")[..9]) =>
            status(1, INTERNAL), usable();
        unary_of("a prefix without its end is INTERNAL", [0, 0, 0]) => status(1, INTERNAL), usable();
        unary_of("a message that announces more than comes is INTERNAL", [0, 0, 0, 0, 9, 1]) =>
            status(1, INTERNAL), usable();
        unary_of("a compressed message without grpc-encoding is INTERNAL", [1, 0, 0, 0, 1, b'a']) =>
            status_says(1, INTERNAL, "compressed"), usable();
        unary_of("a flag of 2 is INTERNAL", [2, 0, 0, 0, 1, b'a']) => status(1, INTERNAL), usable();
        unary_of("a flag of 255 is INTERNAL", [255, 0, 0, 0, 1, b'a']) => status(1, INTERNAL), usable();
        case("Length-Prefixed-Message", "a message that is announced too large is refused before it comes") =>
            send([first.clone(), data(1, 0, [0, 0, 0x10, 0, 1])]),
            status_says(1, RESOURCE_EXHAUSTED, "1048576"), released(1), usable();
        case("Length-Prefixed-Message", "a message of 4 GiB is refused before it comes") =>
            send([first.clone(), data(1, 0, [0, 255, 255, 255, 255])]),
            status_says(1, RESOURCE_EXHAUSTED, "1048576"), released(1), usable();
        case("Length-Prefixed-Message", "the method's own bound counts: another's is smaller") =>
            send([headers(1, 0, &call_of("/echo.Other/Echo")), data(1, 0, message([7; 16_000]))]),
            send(data(1, 0, [7; 16_000]).repeat(3)), nothing(), send(data(1, 0, [7; 16_000]).repeat(2)),
            status(1, RESOURCE_EXHAUSTED), released(1), usable();
        case("Length-Prefixed-Message",
            "gRPC messages and frames of HTTP/2 have nothing to do with each other") =>
            send([
                headers(1, 0, &call_of(STREAM)),
                data(1, 0, [message("a"), message("b")[..3].to_vec()].concat()),
            ]), some(1, 6), send(data(1, END_STREAM, [&message("b")[3..], &message("c")].concat())),
            rest(1, 12);
    });
    cases
}

fn counts() -> Vec<Case> {
    let two = [message("a"), message("b")].concat();
    cases! {
        unary_of("a unary method without a message is UNIMPLEMENTED", "") =>
            status(1, UNIMPLEMENTED), usable();
        unary_of("a unary method with two messages is UNIMPLEMENTED", &two) =>
            status(1, UNIMPLEMENTED), usable();
        case("Requests", "a second message in a later frame is UNIMPLEMENTED too") =>
            send([headers(1, 0, &CALL), data(1, 0, message("a"))]), nothing(),
            send(data(1, END_STREAM, message("b"))), status(1, UNIMPLEMENTED), usable();
        case("Requests", "a call without DATA has no message") =>
            send(headers(1, END_STREAM, &CALL)), status(1, UNIMPLEMENTED), usable();
        case("Requests", "a unary call is answered when its end has come") =>
            send([headers(1, 0, &CALL), data(1, 0, message("a"))]), nothing(), send(data(1, END_STREAM, "")),
            echo(1, "a");
    }
}

fn streaming() -> Vec<Case> {
    let open = || headers(1, 0, &call_of(STREAM));
    let three = [message("a"), message("bc"), message("")].concat();
    cases! {
        sent("a stream may have many messages", STREAM, &three) => answer(1, three.clone());
        sent("a stream may have no message", STREAM, "") => answer(1, "");
        case("Requests", "each message of a stream is answered when it comes") =>
            send([open(), data(1, 0, message("a"))]), some(1, 6), send(data(1, 0, message("b"))), some(1, 6),
            send(data(1, END_STREAM, "")), rest(1, 0);
        case("Requests", "a stream is answered before its first message") =>
            send(open()), some(1, 0), send(data(1, END_STREAM, message("a"))), rest(1, 6);
        case("Requests", "a fault in a stream comes behind the answers before it") =>
            send([open(), data(1, 0, [message("a"), vec![9, 0, 0, 0, 0]].concat())]), ends(1, 6, INTERNAL),
            released(1), usable();
        case("Requests", "a stream that ends within a message is INTERNAL") =>
            send([open(), data(1, END_STREAM, [0, 0, 0, 0, 2, b'a'])]), ends(1, 0, INTERNAL), usable();
        case("Requests", "streams and single calls share a connection") =>
            send([open(), data(1, 0, message("a")), unary(3, "b"), data(1, 0, message("c")), unary(5, "d")]),
            some(1, 12), echo(3, "b"), echo(5, "d"), send(data(1, END_STREAM, "")), rest(1, 0);
    }
}

fn router() -> Vec<Case> {
    let other = "/echo.Other/Echo";
    cases! {
        sent("a general router gets the whole body", other, message("hello")) => echo(1, "hello");
        sent("a general router may get no body", other, "") => answer(1, "");
        case("Requests", "a general router gets a body in pieces") =>
            send([headers(1, 0, &call_of(other)), data(1, 0, &message("hello")[..2])]), nothing(),
            send([data(1, 0, &message("hello")[2..8]), data(1, END_STREAM, &message("hello")[8..])]),
            echo(1, "hello");
        case("Requests", "a call of a general router may be reset") =>
            send([headers(1, 0, &call_of(other)), data(1, 0, "x")]), nothing(), send(reset(1, CANCEL)),
            nothing(), usable();
    }
}
