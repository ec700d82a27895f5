//! 6.5 to 6.7: SETTINGS, PUSH_PROMISE and PING.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [frames(), parameters(), order(), pushes(), pings()].into_iter().flatten().collect()
}

fn frames() -> Vec<Case> {
    let of_length = |name: &str, flags: u8, length: usize| {
        case("6.5", name).send(frame(SETTINGS, flags, 0, vec![0; length])).error(FRAME_SIZE_ERROR)
    };
    cases! {
        case("6.5", "SETTINGS on a stream is a connection error") =>
            send(frame(SETTINGS, 0, 1, "")), error(PROTOCOL_ERROR);
        case("6.5", "an acknowledgement on a stream is a connection error") =>
            send(frame(SETTINGS, ACK, 1, "")), error(PROTOCOL_ERROR);
        of_length("SETTINGS of 1 byte is FRAME_SIZE_ERROR", 0, 1);
        of_length("SETTINGS of 5 bytes is FRAME_SIZE_ERROR", 0, 5);
        of_length("SETTINGS of 7 bytes is FRAME_SIZE_ERROR", 0, 7);
        of_length("an acknowledgement with a payload is FRAME_SIZE_ERROR", ACK, 6);
        of_length("an acknowledgement of 1 byte is FRAME_SIZE_ERROR", ACK, 1);
        case("6.5", "SETTINGS may be empty") => send(settings(&[])), acks(1), usable();
        case("6.5", "an acknowledgement is not acknowledged") =>
            send(frame(SETTINGS, ACK, 0, "")), nothing(), usable();
        case("6.5", "acknowledgements that nobody waits for are ignored") =>
            send(frame(SETTINGS, ACK, 0, "").repeat(5)), nothing(), usable();
        case("6.5", "SETTINGS may have as many parameters as a frame holds") =>
            send(settings(&[(0x77, 1); 2730])), acks(1), usable();
    }
}

fn parameters() -> Vec<Case> {
    let allowed = |name: &str, parameter: u16, value: u32| {
        case("6.5.2", name).send(settings(&[(parameter, value)])).acks(1).usable()
    };
    let wrong = |name: &str, parameter: u16, value: u32, code: u32| {
        case("6.5.2", name).send(settings(&[(parameter, value)])).error(code)
    };
    cases! {
        allowed("HEADER_TABLE_SIZE may be 0", HEADER_TABLE_SIZE, 0);
        allowed("HEADER_TABLE_SIZE may be as large as can be", HEADER_TABLE_SIZE, u32::MAX);
        allowed("ENABLE_PUSH may be 0", ENABLE_PUSH, 0);
        allowed("ENABLE_PUSH may be 1", ENABLE_PUSH, 1);
        wrong("ENABLE_PUSH of 2 is PROTOCOL_ERROR", ENABLE_PUSH, 2, PROTOCOL_ERROR);
        wrong("ENABLE_PUSH of 2^32-1 is PROTOCOL_ERROR", ENABLE_PUSH, u32::MAX, PROTOCOL_ERROR);
        allowed("MAX_CONCURRENT_STREAMS may be 0", MAX_CONCURRENT_STREAMS, 0);
        allowed("MAX_CONCURRENT_STREAMS may be as large as can be", MAX_CONCURRENT_STREAMS, u32::MAX);
        allowed("INITIAL_WINDOW_SIZE may be 2^31-1", INITIAL_WINDOW_SIZE, (1 << 31) - 1);
        wrong("INITIAL_WINDOW_SIZE of 2^31 is FLOW_CONTROL_ERROR", INITIAL_WINDOW_SIZE, 1 << 31,
            FLOW_CONTROL_ERROR);
        wrong("INITIAL_WINDOW_SIZE of 2^32-1 is FLOW_CONTROL_ERROR", INITIAL_WINDOW_SIZE, u32::MAX,
            FLOW_CONTROL_ERROR);
        allowed("MAX_FRAME_SIZE may be 16,384", MAX_FRAME_SIZE, 16_384);
        allowed("MAX_FRAME_SIZE may be 2^24-1", MAX_FRAME_SIZE, (1 << 24) - 1);
        wrong("MAX_FRAME_SIZE of 16,383 is PROTOCOL_ERROR", MAX_FRAME_SIZE, 16_383, PROTOCOL_ERROR);
        wrong("MAX_FRAME_SIZE of 0 is PROTOCOL_ERROR", MAX_FRAME_SIZE, 0, PROTOCOL_ERROR);
        wrong("MAX_FRAME_SIZE of 2^24 is PROTOCOL_ERROR", MAX_FRAME_SIZE, 1 << 24, PROTOCOL_ERROR);
        allowed("MAX_HEADER_LIST_SIZE may be 0", MAX_HEADER_LIST_SIZE, 0);
        allowed("MAX_HEADER_LIST_SIZE may be as large as can be", MAX_HEADER_LIST_SIZE, u32::MAX);
        allowed("an unknown parameter is ignored", 0xffff, u32::MAX);
        case("6.5.2", "MAX_CONCURRENT_STREAMS of 0 concerns only streams of the server") =>
            send(settings(&[(MAX_CONCURRENT_STREAMS, 0)])), acks(1), send([unary(1, "a"), unary(3, "b")]),
            echo(1, "a"), echo(3, "b");
        case("6.5.2", "an answer needs no larger header table than the client allows") =>
            send(settings(&[(HEADER_TABLE_SIZE, 0)])), acks(1), send([unary(1, "a"), unary(3, "b")]),
            echo(1, "a"), echo(3, "b");
    }
}

/// 6.5.3: parameters hold in their order, and every frame is acknowledged.
fn order() -> Vec<Case> {
    cases! {
        case("6.5.3", "every SETTINGS frame is acknowledged") =>
            send(settings(&[]).repeat(7)), acks(7), usable();
        case("6.5.3", "the last value of a parameter counts") =>
            send(settings(&[(INITIAL_WINDOW_SIZE, 1000), (INITIAL_WINDOW_SIZE, 2)])), acks(1),
            send(unary(1, "a")), some(1, 2);
        case("6.5.3", "every value of a parameter must be possible, not only the last one") =>
            send(settings(&[(MAX_FRAME_SIZE, 1), (MAX_FRAME_SIZE, 20_000)])), error(PROTOCOL_ERROR);
        case("6.5.3", "parameters hold for what is answered behind their acknowledgement") =>
            send([settings(&[(INITIAL_WINDOW_SIZE, 0)]), unary(1, "a")]), acks(1), some(1, 0),
            send(settings(&[(INITIAL_WINDOW_SIZE, 6)])), acks(1), rest(1, 6);
        case("6.5.3", "SETTINGS are acknowledged while calls wait") =>
            send([headers(1, 0, &call_of("/echo.Echo/Held")), settings(&[])]), acks(1);
    }
}

/// 6.6: a client cannot push.
fn pushes() -> Vec<Case> {
    let promise = [&2_u32.to_be_bytes()[..], &block(&CALL)].concat();
    cases! {
        case("6.6", "PUSH_PROMISE of a client is a connection error") =>
            send([headers(1, 0, &CALL), frame(PUSH_PROMISE, END_HEADERS, 1, &promise)]),
            error(PROTOCOL_ERROR);
        case("6.6", "PUSH_PROMISE on an idle stream is a connection error") =>
            send(frame(PUSH_PROMISE, END_HEADERS, 1, &promise)), error(PROTOCOL_ERROR);
        case("6.6", "PUSH_PROMISE on the connection is a connection error") =>
            send(frame(PUSH_PROMISE, END_HEADERS, 0, &promise)), error(PROTOCOL_ERROR);
        case("6.6", "PUSH_PROMISE is a connection error even if it was enabled") =>
            send([settings(&[(ENABLE_PUSH, 1)]), frame(PUSH_PROMISE, END_HEADERS, 1, &promise)]), acks(1),
            error(PROTOCOL_ERROR);
    }
}

fn pings() -> Vec<Case> {
    let ping = |opaque: &[u8]| frame(PING, 0, 0, opaque);
    let of_length = |name: &str, length: usize| {
        case("6.7", name).send(frame(PING, 0, 0, vec![0; length])).error(FRAME_SIZE_ERROR)
    };
    cases! {
        case("6.7", "PING is acknowledged with its own bytes") =>
            send(ping(b"\0\x01\x7f\x80\xff&%$")), pong(b"\0\x01\x7f\x80\xff&%$");
        case("6.7", "every PING is acknowledged") =>
            send([ping(b"11111111"), ping(b"22222222"), ping(b"11111111")]), pong(b"11111111"),
            pong(b"22222222"), pong(b"11111111");
        case("6.7", "an acknowledgement is not acknowledged") =>
            send(frame(PING, ACK, 0, [7; 8])), nothing(), usable();
        case("6.7", "PING on a stream is a connection error") =>
            send(frame(PING, 0, 1, [0; 8])), error(PROTOCOL_ERROR);
        case("6.7", "an acknowledgement on a stream is a connection error") =>
            send(frame(PING, ACK, 1, [0; 8])), error(PROTOCOL_ERROR);
        of_length("PING of 7 bytes is FRAME_SIZE_ERROR", 7);
        of_length("PING of 9 bytes is FRAME_SIZE_ERROR", 9);
        of_length("empty PING is FRAME_SIZE_ERROR", 0);
        case("6.7", "an acknowledgement of 7 bytes is FRAME_SIZE_ERROR") =>
            send(frame(PING, ACK, 0, [0; 7])), error(FRAME_SIZE_ERROR);
        case("6.7", "PING is acknowledged while calls wait") =>
            send([headers(1, 0, &call_of("/echo.Echo/Held")), ping(b"12345678")]), pong(b"12345678");
    }
}
