//! 6.9: flow control, in both directions.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [updates(), sending(), settings_and_windows(), receiving()].into_iter().flatten().collect()
}

const LARGEST: u32 = (1 << 31) - 1;

/// Initial send windows of a stream and of a connection.
const DEFAULT: usize = 65_535;

fn held(stream: u32) -> Vec<u8> {
    headers(stream, 0, &call_of("/echo.Echo/Held"))
}

/// A call whose answer has this many bytes, with its prefix.
fn large(stream: u32, bytes: usize) -> Vec<u8> {
    let count = (bytes - 5).to_string();
    [headers(stream, 0, &call_of("/echo.Echo/Large")), data(stream, END_STREAM, message(count))].concat()
}

fn updates() -> Vec<Case> {
    let of_length = |name: &str, stream: u32, length: usize| {
        case("6.9", name)
            .send([held(1), frame(WINDOW_UPDATE, 0, stream, vec![1; length])].concat())
            .error(FRAME_SIZE_ERROR)
    };
    cases! {
        case("6.9", "an increment of 0 on the connection is a connection error") =>
            send(window_update(0, 0)), error(PROTOCOL_ERROR);
        case("6.9", "an increment of 0 on a stream is a stream error") =>
            send([held(1), window_update(1, 0)]), reset(1, PROTOCOL_ERROR), usable();
        case("6.9", "the reserved bit is no part of the increment") =>
            send(window_update(0, 1 << 31)), error(PROTOCOL_ERROR);
        case("6.9", "the reserved bit of an increment is ignored") =>
            send(frame(WINDOW_UPDATE, 0, 0, [0x80, 0, 0, 1])), usable();
        of_length("WINDOW_UPDATE of 3 bytes on the connection is FRAME_SIZE_ERROR", 0, 3);
        of_length("WINDOW_UPDATE of 5 bytes on the connection is FRAME_SIZE_ERROR", 0, 5);
        of_length("WINDOW_UPDATE of 3 bytes on a stream is FRAME_SIZE_ERROR", 1, 3);
        of_length("empty WINDOW_UPDATE is FRAME_SIZE_ERROR", 0, 0);
        case("6.9.1", "the connection's window may be 2^31-1") =>
            send(window_update(0, LARGEST - DEFAULT as u32)), usable();
        case("6.9.1", "a larger window of the connection is a connection error") =>
            send(window_update(0, LARGEST - DEFAULT as u32 + 1)), error(FLOW_CONTROL_ERROR);
        case("6.9.1", "many increments can make the connection's window too large") =>
            send(window_update(0, LARGEST / 2).repeat(3)), error(FLOW_CONTROL_ERROR);
        case("6.9.1", "a stream's window may be 2^31-1") =>
            send([held(1), window_update(1, LARGEST - DEFAULT as u32)]), usable();
        case("6.9.1", "a larger window of a stream is a stream error") =>
            send([held(1), window_update(1, LARGEST - DEFAULT as u32 + 1)]), reset(1, FLOW_CONTROL_ERROR),
            usable();
    }
}

fn sending() -> Vec<Case> {
    let wide = || settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)]);
    cases! {
        case("6.9.1", "no more is sent than the stream's window") => send(large(1, 70_000)), some(1, DEFAULT);
        case("6.9.1", "the rest is sent when both windows allow") =>
            send(large(1, 70_000)), some(1, DEFAULT), send(window_update(1, 100_000)), nothing(),
            send(window_update(0, 100_000)), rest(1, 70_000 - DEFAULT);
        case("6.9.1", "the order in which the windows grow does not matter") =>
            send(large(1, 70_000)), some(1, DEFAULT), send(window_update(0, 100_000)), nothing(),
            send(window_update(1, 100_000)), rest(1, 70_000 - DEFAULT);
        case("6.9.1", "one byte of a window is one byte of DATA") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 0)]), unary(1, "ab")]), acks(1), some(1, 0),
            send(window_update(1, 1)), some(1, 1), send(window_update(1, 1)), some(1, 1),
            send(window_update(1, 5)), rest(1, 5);
        case("6.9.1", "all streams share the connection's window") =>
            send([wide(), large(1, 60_000), large(3, 60_000)]), acks(1), rest(1, 60_000),
            some(3, DEFAULT - 60_000), send(window_update(0, 100_000)), rest(3, 60_000 - (DEFAULT - 60_000));
        case("6.9.1", "a stream without a window does not hold up others") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 0)]), unary(1, "a"), unary(3, "b")]), acks(1), some(1, 0),
            some(3, 0), send(window_update(3, 100)), rest(3, 6);
        case("6.9.1", "an answer without DATA needs no window") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 0)]), headers(1, END_STREAM, &CALL)]), acks(1),
            status(1, UNIMPLEMENTED);
        case("6.9.1", "PING is acknowledged without a window") =>
            send([large(1, 70_000), frame(PING, 0, 0, *b"12345678")]), some(1, DEFAULT), pong(b"12345678");
        case("6.9.1", "a streaming answer waits for its window") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 8)]), headers(1, 0, &call_of("/echo.Echo/Stream"))]),
            acks(1), send([data(1, 0, message("a")), data(1, END_STREAM, message("b"))]), some(1, 8),
            send(window_update(1, 4)), rest(1, 4);
        case("6.9.1", "an increment may come before the answer") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 0)]), headers(1, 0, &CALL), window_update(1, 6)]), acks(1),
            send(data(1, END_STREAM, message("a"))), echo(1, "a");
    }
}

/// 6.9.2: INITIAL_WINDOW_SIZE changes the windows of streams that are open, by the difference.
fn settings_and_windows() -> Vec<Case> {
    let initial = |bytes: u32| settings(&[(INITIAL_WINDOW_SIZE, bytes)]);
    cases! {
        case("6.9.2", "a larger initial window counts for open streams") =>
            send([initial(10), large(1, 30)]), acks(1), some(1, 10), send(initial(25)), acks(1), some(1, 15),
            send(initial(30)), acks(1), rest(1, 5);
        case("6.9.2", "a smaller one counts for open streams, whose window may become negative") =>
            send([initial(10), large(1, 30)]), acks(1), some(1, 10), send([initial(4), window_update(1, 6)]),
            acks(1), nothing(), send(window_update(1, 3)), some(1, 3), send(initial(100)), acks(1),
            rest(1, 17);
        case("6.9.2", "it counts for streams that are opened later") =>
            send([initial(3), unary(1, "a"), initial(2), unary(3, "b")]), acks(2), some(1, 2), some(3, 2);
        case("6.9.2", "it does not change the connection's window") =>
            send([initial(1 << 20), large(1, 70_000)]), acks(1), some(1, DEFAULT), send(initial(2 << 20)),
            acks(1), nothing();
        case("6.9.2", "it cannot make the window of an open stream larger than 2^31-1") =>
            send([held(1), window_update(1, 1), initial(LARGEST)]), error(FLOW_CONTROL_ERROR);
        case("6.9.2", "it can if the stream with the larger window has ended") =>
            send([held(1), window_update(1, 1), reset(1, CANCEL), initial(LARGEST)]), acks(1), usable();
        case("6.9.2", "increments and settings add up") =>
            send([initial(0), large(1, 30), window_update(1, 20), initial(10)]), acks(2), rest(1, 30);
    }
}

/// The receive window of a stream.
const STREAM: usize = 128 << 10;

/// Receive windows: that of a stream, and 1 MiB for a connection.
fn receiving() -> Vec<Case> {
    const STREAMS: u32 = 8;
    let unread = |stream| headers(stream, 0, &call_of("/echo.Echo/Unread"));
    let piece = || data(1, 0, message([7; 16_000]));
    let all =
        |streams: u32| (0..streams).flat_map(|index| [unread(1 + 2 * index), full(1 + 2 * index)].concat());
    cases! {
        bare("6.9.2", "the stream window is announced") =>
            send(PREFACE), settings([(INITIAL_WINDOW_SIZE, STREAM as u32)]);
        bare("6.9.2", "the connection window is more than the default") => send(PREFACE), credit(0);
        case("6.9.1", "a stream may send all of its window") =>
            send([unread(1), full(1)]), nothing(), usable();
        case("6.9.1", "a stream that sends more than its window is reset") =>
            send([unread(1), full(1), data(1, 0, "x")]), reset(1, FLOW_CONTROL_ERROR), usable();
        case("6.9.1", "padding counts against the window") =>
            send([unread(1), full(1)[..(STREAM - 16_384) / 16_384 * 16_393].to_vec()]),
            send(data(1, 0, [0; 16_380])), send(data(1, PADDED, [3, 1, 0, 0, 0])),
            reset(1, FLOW_CONTROL_ERROR), usable();
        case("6.9.1", "empty DATA needs no window") =>
            send([unread(1), full(1), data(1, 0, ""), data(1, END_STREAM, "")]), nothing();
        case("6.9.1", "as many streams as fill the connection's window may do so") =>
            send(all(STREAMS).collect::<Vec<u8>>()), nothing();
        case("6.9.1", "more than the connection's window is a connection error") =>
            send(all(STREAMS).collect::<Vec<u8>>()), send([unread(101), data(101, 0, "x")]),
            error(FLOW_CONTROL_ERROR);
        case("6.9.1", "what a service reads is credited to the stream and to the connection") =>
            send([window_update(0, 1 << 24), settings(&[(INITIAL_WINDOW_SIZE, 1 << 24)])]), acks(1),
            send([headers(1, 0, &call_of("/echo.Echo/Stream")), piece().repeat(4)]), some(1, 4 * 16_005),
            send(piece().repeat(4)), some(1, 4 * 16_005), credit(1);
        long_call();
        faulty_calls() => credit(0), usable();
        reset_calls("what is sent to calls that are reset before they begin is credited",
            "/echo.Echo/Unary", false);
        reset_calls("what calls that were reset have not read is credited", "/echo.Echo/Unread", true);
        reset_calls("what calls that were reset have read is credited", "/echo.Echo/Held", true);
        case("6.9.1", "DATA behind END_STREAM is credited to the connection") =>
            send([headers(1, END_STREAM, &call_of("/echo.Echo/Unread")), full(1)]), reset(1, STREAM_CLOSED),
            usable();
    }
}

/// As many bytes as fill the window of a stream.
fn full(stream: u32) -> Vec<u8> {
    data(stream, 0, [0; 16_384]).repeat(STREAM / 16_384)
}

/// 300,000 bytes, of which at most the window is on its way at a time.
fn long_call() -> Case {
    let text = [7; 300_000];
    let bytes = message(text);
    let frames = |range: std::ops::Range<usize>| {
        bytes[range].chunks(16_384).flat_map(|piece| data(1, 0, piece)).collect::<Vec<u8>>()
    };
    case("6.9.1", "a call may have more bytes than the stream's window if they are read")
        .send([window_update(0, 1 << 24), settings(&[(INITIAL_WINDOW_SIZE, 1 << 24)])].concat())
        .acks(1)
        .send([headers(1, 0, &CALL), frames(0..131_072)].concat())
        .credit(1)
        // The credit of the whole message came at once.
        .send([frames(131_072..bytes.len()), data(1, END_STREAM, "")].concat())
        .answer(1, bytes.clone())
}

/// Calls that the server resets, with more bytes than the connection's window.
fn faulty_calls() -> Case {
    let case = case("6.9.1", "what is sent to streams that were reset is credited");
    (0..12).map(|index| 1 + 2 * index).fold(case, |case, stream| {
        let call = headers(stream, 0, &and(&[("connection", "close")]));
        case.send([call, full(stream)]).reset(stream, PROTOCOL_ERROR)
    })
}

/// Calls of 48 KiB that are reset, with more bytes than the connection's window.
fn reset_calls(name: &str, path: &str, is_begun: bool) -> Case {
    (0..24)
        .map(|index| 1 + 2 * index)
        .fold(case("6.9.1", name), |case, stream| {
            let bytes = message([7; 3 * 16_384 - 5]);
            let pieces: Vec<u8> = bytes.chunks(16_384).flat_map(|piece| data(stream, 0, piece)).collect();
            let case = case.send([headers(stream, 0, &call_of(path)), pieces].concat());
            // What arrives together with its reset has not begun.
            let case = if is_begun { case.nothing() } else { case };
            case.send(reset(stream, CANCEL)).nothing()
        })
        .usable()
}
