//! 6.1 to 6.4: DATA, HEADERS, PRIORITY and RST_STREAM. A choice: a PRIORITY frame of a wrong length may be a stream
//! error; here it is a connection error (5.4).

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [data_frames(), headers_frames(), priority_frames(), reset_frames()].into_iter().flatten().collect()
}

fn padded(padding: usize, content: &[u8]) -> Vec<u8> {
    [&[padding as u8][..], content, &vec![0; padding]].concat()
}

fn data_frames() -> Vec<Case> {
    let opened = |name: &str| case("6.1", name).send(headers(1, 0, &CALL));
    let hello = message("hello");
    cases! {
        case("6.1", "DATA on stream 0 is a connection error") => send(data(0, 0, "x")), error(PROTOCOL_ERROR);
        opened("padding is taken off") =>
            send(data(1, END_STREAM | PADDED, padded(9, &hello))), echo(1, "hello");
        opened("the padding may be empty") =>
            send(data(1, END_STREAM | PADDED, padded(0, &hello))), echo(1, "hello");
        opened("the padding may have 255 bytes") =>
            send(data(1, END_STREAM | PADDED, padded(255, &hello))), echo(1, "hello");
        opened("the padding may be all of a frame") =>
            send([data(1, PADDED, padded(9, b"")), data(1, END_STREAM, &hello)]), echo(1, "hello");
        opened("padding that is not zero is accepted") =>
            send(data(1, END_STREAM | PADDED, [&[3][..], &hello, b"abc"].concat())), echo(1, "hello");
        opened("padding as long as the payload is a connection error") =>
            send(data(1, PADDED, [5, 0, 0, 0, 0])), error(PROTOCOL_ERROR);
        opened("padding longer than the payload is a connection error") =>
            send(data(1, PADDED, [200, 0, 0, 0, 0])), error(PROTOCOL_ERROR);
        opened("PADDED without the length of the padding is FRAME_SIZE_ERROR") =>
            send(data(1, PADDED, "")), error(FRAME_SIZE_ERROR);
        opened("empty frames are allowed") =>
            send([data(1, 0, ""), data(1, 0, &hello), data(1, 0, ""), data(1, END_STREAM, "")]),
            echo(1, "hello");
        opened("END_STREAM may come in an empty frame") =>
            send(data(1, 0, &hello)), nothing(), send(data(1, END_STREAM, "")), echo(1, "hello");
        opened("END_STREAM may come in a frame of padding") => send(data(1, 0, &hello)), nothing(),
            send(data(1, END_STREAM | PADDED, padded(20, b""))), echo(1, "hello");
        opened("every byte may have a frame of its own") =>
            send(hello.iter().flat_map(|byte| data(1, 0, [*byte])).collect::<Vec<u8>>()), nothing(),
            send(data(1, END_STREAM, "")), echo(1, "hello");
        opened("a frame may arrive byte by byte") =>
            send_byte_by_byte(data(1, END_STREAM, &hello)), echo(1, "hello");
    }
}

fn headers_frames() -> Vec<Case> {
    let call = block(&CALL);
    let body = data(1, END_STREAM, message("a"));
    let with_flags = |name: &str, flags: u8, payload: Vec<u8>| {
        case("6.2", name).send([frame(HEADERS, END_HEADERS | flags, 1, payload), body.clone()].concat())
    };
    let prioritized = |block: &[u8]| [&[0, 0, 0, 0, 15][..], block].concat();
    cases! {
        with_flags("padding is taken off", PADDED, padded(9, &call)) => echo(1, "a");
        with_flags("the padding may be empty", PADDED, padded(0, &call)) => echo(1, "a");
        with_flags("the padding may have 255 bytes", PADDED, padded(255, &call)) => echo(1, "a");
        with_flags("the priority is taken off", PRIORITIZED, prioritized(&call)) => echo(1, "a");
        with_flags("padding and priority are taken off", PADDED | PRIORITIZED,
            padded(7, &prioritized(&call))) => echo(1, "a");
        with_flags("padding as long as the payload is a connection error", PADDED, vec![4, 0, 0, 0]) =>
            error(PROTOCOL_ERROR);
        with_flags("padding longer than the payload is a connection error", PADDED, vec![200, 0, 0, 0]) =>
            error(PROTOCOL_ERROR);
        with_flags("padding that leaves too few bytes for the priority is an error", PADDED | PRIORITIZED,
            padded(3, &[0; 4])) => error_of([PROTOCOL_ERROR, FRAME_SIZE_ERROR]);
        with_flags("PADDED without the length of the padding is FRAME_SIZE_ERROR", PADDED, Vec::new()) =>
            error(FRAME_SIZE_ERROR);
        with_flags("a payload too short for its priority is FRAME_SIZE_ERROR", PRIORITIZED, vec![0; 4]) =>
            error(FRAME_SIZE_ERROR);
        case("6.2", "a block that is only priority has no fields") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM | PRIORITIZED, 1, [0; 5])), reset(1, PROTOCOL_ERROR),
            usable();
        case("6.2", "END_STREAM on HEADERS counts once the block is complete") =>
            send(frame(HEADERS, END_STREAM, 1, &call[..20])), nothing(),
            send(frame(CONTINUATION, END_HEADERS, 1, &call[20..])), status(1, UNIMPLEMENTED);
        case("6.2", "headers may be padded in trailers") =>
            send([headers(1, 0, &CALL), data(1, 0, message("a"))]),
            send(frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, padded(9, &block(&[("x", "y")])))),
            echo(1, "a");
    }
}

fn priority_frames() -> Vec<Case> {
    cases! {
        case("6.3", "PRIORITY on stream 0 is a connection error") =>
            send(frame(PRIORITY, 0, 0, [0; 5])), error(PROTOCOL_ERROR);
        case("6.3", "PRIORITY of 4 bytes is FRAME_SIZE_ERROR") =>
            send(frame(PRIORITY, 0, 1, [0; 4])), error(FRAME_SIZE_ERROR);
        case("6.3", "PRIORITY of 6 bytes is FRAME_SIZE_ERROR") =>
            send(frame(PRIORITY, 0, 1, [0; 6])), error(FRAME_SIZE_ERROR);
        case("6.3", "empty PRIORITY is FRAME_SIZE_ERROR") =>
            send(frame(PRIORITY, 0, 1, "")), error(FRAME_SIZE_ERROR);
        case("6.3", "PRIORITY changes nothing on an open stream") =>
            send([headers(1, 0, &CALL), frame(PRIORITY, 0, 1, [0x80, 0, 0, 3, 7])]),
            send(data(1, END_STREAM, message("a"))), echo(1, "a");
        case("6.3", "PRIORITY on a stream of the server changes nothing") =>
            send(frame(PRIORITY, 0, 2, [0; 5])), usable();
    }
}

fn reset_frames() -> Vec<Case> {
    let of_length = |name: &str, length: usize| {
        case("6.4", name)
            .send([headers(1, 0, &CALL), frame(RST_STREAM, 0, 1, vec![0; length])].concat())
            .error(FRAME_SIZE_ERROR)
    };
    cases! {
        case("6.4", "RST_STREAM on stream 0 is a connection error") =>
            send(reset(0, CANCEL)), error(PROTOCOL_ERROR);
        of_length("RST_STREAM of 3 bytes is FRAME_SIZE_ERROR", 3);
        of_length("RST_STREAM of 5 bytes is FRAME_SIZE_ERROR", 5);
        of_length("empty RST_STREAM is FRAME_SIZE_ERROR", 0);
        case("6.4", "RST_STREAM cancels a call that has not begun") =>
            send([unary(1, "a"), reset(1, CANCEL)]), nothing(), usable();
        case("6.4", "RST_STREAM cancels a call that is waited for") =>
            send([headers(1, 0, &call_of("/echo.Echo/Held")), data(1, END_STREAM, message("a"))]), nothing(),
            send(reset(1, CANCEL)), nothing(), usable();
        case("6.4", "RST_STREAM ends a streaming answer") =>
            send([headers(1, 0, &call_of("/echo.Echo/Stream")), data(1, 0, message("a"))]), some(1, 6),
            send(reset(1, CANCEL)), nothing(), usable();
        case("6.4", "RST_STREAM ends an answer that waits for a window") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 3)]), unary(1, "a")]), acks(1), some(1, 3),
            send([reset(1, CANCEL), settings(&[(INITIAL_WINDOW_SIZE, 100)])]), acks(1), usable();
        case("6.4", "RST_STREAM with NO_ERROR ends a stream too") =>
            send([headers(1, 0, &CALL), reset(1, NO_ERROR)]), nothing(), usable();
    }
}
