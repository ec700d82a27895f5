//! Responses: status and trailers, and calls that are decided together.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    let all = |texts: &[&str]| {
        texts
            .iter()
            .enumerate()
            .flat_map(|(index, text)| unary(1 + 2 * index as u32, text))
            .collect::<Vec<u8>>()
    };
    cases! {
        case("Responses", "a message and its status come in HEADERS, DATA and trailers") =>
            send(unary(1, "a")), echo(1, "a");
        case("Responses", "a call that fails has only trailers") =>
            send(unary(1, "fail")), status_says(1, INVALID_ARGUMENT, "asked");
        case("Responses", "a status may be longer than a frame, and goes on in CONTINUATION") =>
            send(window_update(0, 1 << 20)),
            send({
                let bytes = message(format!("fail{} here", "x".repeat(40_000)));
                let pieces = bytes.chunks(16_384).flat_map(|piece| data(1, 0, piece)).collect();
                [headers(1, 0, &CALL), pieces, data(1, END_STREAM, "")].concat()
            }), status_says(1, INVALID_ARGUMENT, "x%20here");
        case("Responses", "only trailers have content-type and status") =>
            send(unary(1, "fail")), field_has(1, "content-type", "application/grpc");
        case("Responses", "HTTP's status is 200 whatever the call's is") =>
            send(unary(1, "fail")), http_with(1, "200", "grpc-status", "3");
        case("Responses", "a message of a status is percent-encoded") =>
            send(headers(1, END_STREAM, &and(&[("grpc-encoding", "a b")]))),
            field_has(1, "grpc-message", "%20");
        case("Responses", "a call that must be waited for is answered like any other") =>
            send(unary(1, "wait")), echo(1, "wait");
        case("Responses", "calls that wait hold up no others") =>
            send([unary(1, "wait"), unary(3, "b"), unary(5, "wait too")]), echo(1, "wait"), echo(3, "b"),
            echo(5, "wait too");
        case("Responses", "calls that fail fail alone") =>
            send(all(&["a", "fail", "b", "fail", "wait", "c"])), echo(1, "a"), status(3, INVALID_ARGUMENT),
            echo(5, "b"), status(7, INVALID_ARGUMENT), echo(9, "wait"), echo(11, "c");
        case("Responses", "methods may be mixed") =>
            send([unary(1, "a"), headers(3, 0, &call_of("/echo.Echo/Slow")), unary(5, "b")]),
            send([headers(7, 0, &call_of("/echo.Other/Echo")), data(7, END_STREAM, message("d"))]),
            send(data(3, END_STREAM, message("c"))), echo(1, "a"), echo(3, "c"), echo(5, "b"), echo(7, "d");
        case("Responses", "an answer of no bytes has a message") => send(unary(1, "")), echo(1, "");
        case("Responses", "a large answer has several frames") =>
            send([headers(1, 0, &call_of("/echo.Echo/Large")), data(1, END_STREAM, message("50000"))]),
            answer(1, message([7; 50_000]));
        case("Responses", "what a service refuses is a status") =>
            send([headers(1, 0, &call_of("/echo.Echo/Large")), data(1, END_STREAM, message("many"))]),
            status(1, INVALID_ARGUMENT);
        case("Errors", "a client that resets its call gets no answer") =>
            send([unary(1, "wait"), reset(1, CANCEL)]), nothing();
        case("Errors", "a client that resets one of many calls gets the others' answers") =>
            send([all(&["wait", "wait", "c"]), reset(3, CANCEL)]), echo(1, "wait"), echo(5, "c");
        case("Errors", "a stream that is refused may be sent again") =>
            limits(|limits| limits.max_streams = 1), send([headers(1, 0, &CALL), headers(3, 0, &CALL)]),
            reset(3, REFUSED_STREAM);
    }
}
