//! 5: the states of a stream, identifiers, concurrency and errors. The choices: frames on a stream that has ended
//! may be errors of the stream or of the connection (5.1, 5.4); identifiers that were skipped count as closed
//! (5.1.1), so that headers on them are STREAM_CLOSED.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [idle(), half_closed(), closed(), identifiers(), concurrency(), priority(), errors()]
        .into_iter()
        .flatten()
        .collect()
}

fn held(stream: u32) -> Vec<u8> {
    [headers(stream, 0, &call_of("/echo.Echo/Held")), data(stream, END_STREAM, message("a"))].concat()
}

/// 5.1, idle: only HEADERS and PRIORITY may come.
fn idle() -> Vec<Case> {
    let on_idle = |name: &str, bytes: Vec<u8>| {
        case("5.1", format!("{name} on an idle stream is a connection error"))
            .send(bytes)
            .error(PROTOCOL_ERROR)
    };
    let behind = |name: &str, bytes: Vec<u8>| {
        case("5.1", format!("{name} on an idle stream behind the last one is a connection error"))
            .send(unary(5, "a"))
            .echo(5, "a")
            .send(bytes)
            .error_after(5, PROTOCOL_ERROR)
    };
    cases! {
        on_idle("DATA", data(1, END_STREAM, message("a")));
        on_idle("RST_STREAM", reset(1, CANCEL));
        on_idle("WINDOW_UPDATE", window_update(1, 1));
        on_idle("CONTINUATION", frame(CONTINUATION, END_HEADERS, 1, block(&CALL)));
        behind("DATA", data(7, 0, "x"));
        behind("RST_STREAM", reset(7, CANCEL));
        behind("WINDOW_UPDATE", window_update(7, 1));
        on_idle("DATA of the server's", data(2, 0, "x"));
        on_idle("RST_STREAM of the server's", reset(2, CANCEL));
        on_idle("WINDOW_UPDATE of the server's", window_update(2, 1));
        case("5.1", "PRIORITY on an idle stream is allowed") => send(frame(PRIORITY, 0, 7, [0; 5])), usable();
        case("5.1", "PRIORITY on an idle stream opens nothing") =>
            send([frame(PRIORITY, 0, 7, [0; 5]), unary(1, "a")]), echo(1, "a");
    }
}

/// 5.1, half-closed (remote): only WINDOW_UPDATE, PRIORITY and RST_STREAM may come.
fn half_closed() -> Vec<Case> {
    let begun = |name: &str| case("5.1", name).send(held(1)).nothing();
    cases! {
        begun("DATA on a half-closed stream is a stream error") =>
            send(data(1, 0, "x")), reset(1, STREAM_CLOSED), usable();
        begun("empty DATA on a half-closed stream is a stream error") =>
            send(data(1, END_STREAM, "")), reset(1, STREAM_CLOSED), usable();
        begun("HEADERS on a half-closed stream is a stream error") =>
            send(headers(1, END_STREAM, &[("x", "y")])), reset(1, STREAM_CLOSED), usable();
        begun("CONTINUATION on a half-closed stream is a connection error") =>
            send(frame(CONTINUATION, END_HEADERS, 1, "")), error(PROTOCOL_ERROR);
        begun("WINDOW_UPDATE on a half-closed stream is allowed") => send(window_update(1, 1)), usable();
        begun("PRIORITY on a half-closed stream is allowed") => send(frame(PRIORITY, 0, 1, [0; 5])), usable();
        begun("RST_STREAM on a half-closed stream ends it") => send(reset(1, CANCEL)), usable();
        case("5.1", "END_STREAM of HEADERS half-closes a stream") =>
            send(headers(1, END_STREAM, &call_of("/echo.Echo/Unread"))), nothing(), send(data(1, 0, "x")),
            reset(1, STREAM_CLOSED), usable();
    }
}

/// 5.1, closed.
fn closed() -> Vec<Case> {
    let ended = |name: &str| case("5.1", name).send(unary(1, "a")).echo(1, "a");
    let cancelled = |name: &str| case("5.1", name).send(held(1)).nothing().send(reset(1, CANCEL)).nothing();
    let faulty = |name: &str| {
        case("5.1", name).send(headers(1, 0, &and(&[("connection", "close")]))).reset(1, PROTOCOL_ERROR)
    };
    cases! {
        ended("DATA on a stream that has ended is STREAM_CLOSED") =>
            send(data(1, 0, "x")), reset(1, STREAM_CLOSED), usable();
        ended("HEADERS on a stream that has ended is STREAM_CLOSED") =>
            send(headers(1, END_STREAM, &CALL)), error(STREAM_CLOSED);
        ended("CONTINUATION on a stream that has ended is a connection error") =>
            send(frame(CONTINUATION, END_HEADERS, 1, "")), error(PROTOCOL_ERROR);
        ended("WINDOW_UPDATE on a stream that has ended is ignored") => send(window_update(1, 1)), usable();
        ended("RST_STREAM on a stream that has ended is ignored") => send(reset(1, CANCEL)), usable();
        ended("PRIORITY on a stream that has ended is allowed") =>
            send(frame(PRIORITY, 0, 1, [0; 5])), usable();
        cancelled("DATA on a stream that the client has reset is STREAM_CLOSED") =>
            send(data(1, 0, "x")), reset(1, STREAM_CLOSED), usable();
        cancelled("HEADERS on a stream that the client has reset is STREAM_CLOSED") =>
            send(headers(1, END_STREAM, &CALL)), reset(1, STREAM_CLOSED), usable();
        cancelled("WINDOW_UPDATE on a stream that the client has reset is ignored") =>
            send(window_update(1, 1)), usable();
        cancelled("a second RST_STREAM is ignored") => send(reset(1, CANCEL)), usable();
        cancelled("PRIORITY on a stream that the client has reset is allowed") =>
            send(frame(PRIORITY, 0, 1, [0; 5])), usable();
        faulty("DATA that was on its way to a stream that the server has reset is ignored") =>
            send([data(1, 0, "x"), data(1, END_STREAM, "x")]), usable();
        faulty("trailers that were on their way to a stream that the server has reset are ignored") =>
            send(headers(1, END_STREAM, &[("x", "y")])), usable();
        faulty("WINDOW_UPDATE that was on its way to a stream that the server has reset is ignored") =>
            send(window_update(1, 1)), usable();
        faulty("RST_STREAM that was on its way to a stream that the server has reset is ignored") =>
            send(reset(1, CANCEL)), usable();
    }
}

fn identifiers() -> Vec<Case> {
    cases! {
        case("5.1.1", "HEADERS on stream 0 is a connection error") =>
            send(headers(0, END_STREAM, &CALL)), error(PROTOCOL_ERROR);
        case("5.1.1", "HEADERS on a stream of the server is a connection error") =>
            send(headers(2, END_STREAM, &CALL)), error(PROTOCOL_ERROR);
        case("5.1.1", "identifiers may be skipped") =>
            send([unary(1, "a"), unary(7, "b"), unary(99_999, "c")]), echo(1, "a"), echo(7, "b"),
            echo(99_999, "c");
        case("5.1.1", "an identifier that was skipped cannot be used later") => send(unary(5, "a")),
            echo(5, "a"), send(headers(3, END_STREAM, &CALL)), error_of([PROTOCOL_ERROR, STREAM_CLOSED]);
        case("5.1.1", "an identifier that was skipped is closed for DATA") =>
            send(unary(5, "a")), echo(5, "a"), send(data(3, 0, "x")), reset(3, STREAM_CLOSED), usable();
        case("5.1.1", "an identifier cannot be used twice") =>
            send(unary(5, "a")), echo(5, "a"), send(unary(5, "a")), error_of([PROTOCOL_ERROR, STREAM_CLOSED]);
        case("5.1.1", "the largest identifier can be used") =>
            send(unary(0x7fff_ffff, "the last")), echo(0x7fff_ffff, "the last");
        case("5.1.1", "an identifier of a request that was not served counts") =>
            send(headers(5, END_STREAM, &and(&[("connection", "close")]))), reset(5, PROTOCOL_ERROR),
            send(data(7, 0, "x")), error_after(5, PROTOCOL_ERROR);
    }
}

fn concurrency() -> Vec<Case> {
    let two = |name: &str| case("5.1.2", name).limits(|limits| limits.max_streams = 2);
    let open = |stream| headers(stream, 0, &CALL);
    let body = |stream| data(stream, END_STREAM, message("a"));
    cases! {
        bare("5.1.2", "the limit is announced") =>
            limits(|limits| limits.max_streams = 2), send(PREFACE), settings([(MAX_CONCURRENT_STREAMS, 2)]);
        two("as many streams as announced may be open") =>
            send([open(1), open(3), body(3), body(1)]), echo(1, "a"), echo(3, "a");
        two("a stream above the limit is refused, and others go on") =>
            send([open(1), open(3), open(5), body(1), body(3)]), reset(5, REFUSED_STREAM), echo(1, "a"),
            echo(3, "a");
        two("DATA for a refused stream is ignored") =>
            send([open(1), open(3), open(5), body(5), body(1), body(3)]), reset(5, REFUSED_STREAM),
            echo(1, "a"), echo(3, "a"), usable();
        two("a stream that has ended makes space for another") =>
            send([open(1), open(3), body(1)]), echo(1, "a"), send([open(5), body(5)]), echo(5, "a");
        two("a stream that was reset makes space for another") =>
            send([open(1), open(3), reset(1, CANCEL), open(5), body(5)]), echo(5, "a");
        two("half-closed streams count") => send([held(1), held(3), open(5)]), reset(5, REFUSED_STREAM);
        two("idle and skipped streams do not count") =>
            send([frame(PRIORITY, 0, 1, [0; 5]), open(101), open(103), body(101), body(103)]), echo(101, "a"),
            echo(103, "a");
        two("refused streams are no fault: any number may come") =>
            limits(|limits| limits.max_local_resets = 1), send([held(1), held(3)]),
            send([open(5), open(7), open(9)]), reset(5, REFUSED_STREAM), reset(7, REFUSED_STREAM),
            reset(9, REFUSED_STREAM), send(reset(1, CANCEL)), usable();
    }
}

/// 5.3: priorities are deprecated and ignored. RFC 7540, 5.3.1: a stream cannot depend on itself.
fn priority() -> Vec<Case> {
    let prioritized = |name: &str, dependency: [u8; 5]| {
        let payload = [&dependency[..], &block(&CALL)].concat();
        case("5.3.2", name)
            .send(frame(HEADERS, END_HEADERS | PRIORITIZED, 1, payload))
            .send(data(1, END_STREAM, message("a")))
            .echo(1, "a")
    };
    let on_itself = [&[0, 0, 0, 1, 0][..], &block(&CALL)].concat();
    cases! {
        prioritized("HEADERS with a priority is served", [0, 0, 0, 0, 16]);
        prioritized("a stream may claim to depend on another", [0x80, 0, 0, 9, 255]);
        case("5.3.2", "HEADERS of a stream that depends on itself are a stream error") =>
            send(frame(HEADERS, END_HEADERS | PRIORITIZED, 1, on_itself.clone())), reset(1, PROTOCOL_ERROR),
            usable();
        case("5.3.2", "the same in two frames") => send(frame(HEADERS, PRIORITIZED, 1, on_itself)),
            send(frame(CONTINUATION, END_HEADERS, 1, "")), reset(1, PROTOCOL_ERROR), usable();
        case("5.3.2", "PRIORITY of a stream that depends on itself is a stream error") =>
            send([headers(1, 0, &CALL), frame(PRIORITY, 0, 1, [0, 0, 0, 1, 0])]), reset(1, PROTOCOL_ERROR),
            usable();
        case("5.3.2", "the same of an idle stream is a connection error") =>
            send(frame(PRIORITY, 0, 1, [0, 0, 0, 1, 0])), error(PROTOCOL_ERROR);
    }
}

fn errors() -> Vec<Case> {
    let bad = |stream| headers(stream, END_STREAM, &and(&[("connection", "close")]));
    cases! {
        case("5.4.1", "GOAWAY names the last stream") =>
            send(unary(7, "a")), echo(7, "a"), send(frame(PING, 0, 0, "")), error_after(7, FRAME_SIZE_ERROR);
        case("5.4.1", "GOAWAY names no stream if there was none") =>
            send(frame(PING, 0, 0, "")), error_after(0, FRAME_SIZE_ERROR);
        case("5.4.1", "what came before the error is answered") =>
            send([unary(1, "a"), frame(PING, 0, 0, "")]), echo(1, "a"), error_after(1, FRAME_SIZE_ERROR);
        case("5.4.1", "what comes behind the error is ignored") =>
            send([frame(PING, 0, 0, ""), unary(1, "a")]), error_after(0, FRAME_SIZE_ERROR);
        case("5.4.2", "a stream error ends no other stream") =>
            send([headers(1, 0, &CALL), bad(3), data(1, END_STREAM, message("a"))]), reset(3, PROTOCOL_ERROR),
            echo(1, "a");
        case("5.4.2", "RST_STREAM is not answered with RST_STREAM") =>
            send([headers(1, 0, &CALL), reset(1, PROTOCOL_ERROR)]), nothing(), usable();
        case("5.4.2", "an error is reported once") => send(bad(1)), reset(1, PROTOCOL_ERROR),
            send([data(1, 0, "x"), data(1, 0, "y"), window_update(1, 1)]), nothing();
        case("5.4.3", "a client that goes away ends the connection") =>
            send(held(1)), nothing(), finish(), closed();
        case("5.5", "unknown settings are ignored") =>
            send(settings(&[(0x99, 7), (0, 0)])), acks(1), usable();
        case("5.5", "unknown error codes have no meaning of their own") =>
            send([held(1), reset(1, 0xdead_beef)]), usable();
    }
}
