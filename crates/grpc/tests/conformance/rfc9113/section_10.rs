//! 10.5: what a client may make the server do, and where it ends.

use std::time::Duration;

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [header_lists(), floods()].into_iter().flatten().collect()
}

/// 10.5.1: limits of header lists. One field counts 32 bytes besides its name and value (6.5.2).
fn header_lists() -> Vec<Case> {
    let fields = |bytes: usize| {
        let used: usize = CALL.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        vec![b'v'; bytes - used - 33]
    };
    let call = |bytes: usize| {
        let value = String::from_utf8(fields(bytes)).expect("letters");
        [headers(1, 0, &and(&[("x", &value)])), data(1, END_STREAM, message("a"))].concat()
    };
    let long_call =
        |stream: u32, bytes: usize| long_block(stream, 0, block(&and(&[("x", &"v".repeat(bytes))])));
    let references = |count: usize| [block(&CALL), vec![0x80 | 62; count]].concat();
    cases! {
        case("10.5.1", "a header list may be as long as announced") => send(call(16 << 10)), echo(1, "a");
        case("10.5.1", "one byte more is refused, and the connection goes on") =>
            send(call((16 << 10) + 1)), status_says(1, RESOURCE_EXHAUSTED, "16384"), usable();
        case("10.5.1", "a small block that stands for a long list is refused") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, {
                let mut bomb = [block(&CALL), vec![0x40, 1, b'x']].concat();
                string(&mut bomb, &[b'y'; 3_000]);
                [bomb, vec![0x80 | 62; 10]].concat()
            })), status(1, RESOURCE_EXHAUSTED), usable();
        case("10.5.1", "a refused list changes the dynamic table like any other") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, {
                let mut bomb = [block(&CALL), vec![0x40, 1, b'x']].concat();
                string(&mut bomb, &[b'y'; 3_000]);
                [bomb, vec![0x80 | 62; 10]].concat()
            })), status(1, RESOURCE_EXHAUSTED),
            send([frame(HEADERS, END_HEADERS, 3, references(4)), data(3, END_STREAM, message("a"))]),
            echo(3, "a");
        case("10.5.1", "long trailers end no call") => send([headers(1, 0, &CALL), data(1, 0, message("a"))]),
            send(headers(1, END_STREAM, &[("x", &"y".repeat(16_300)), ("x", "z")])), echo(1, "a");
        case("10.5.1", "a block of 250 KiB ends its call and nothing else") =>
            send([headers(1, 0, &CALL), long_call(3, 250 << 10), data(1, END_STREAM, message("a"))]),
            status_says(3, RESOURCE_EXHAUSTED, "16384"), echo(1, "a"), usable();
        case("10.5.1", "trailers of 250 KiB end no call") =>
            send([headers(1, 0, &CALL), data(1, 0, message("a"))]),
            send(long_block(1, END_STREAM, block(&[("x", &"y".repeat(250 << 10))]))), echo(1, "a"), usable();
        case("10.5.1", "a block of more than 256 KiB is a flood") =>
            send(long_call(1, 257 << 10)), error(ENHANCE_YOUR_CALM);
        case("10.5.1", "a block without an end is a flood") => send(frame(HEADERS, 0, 1, vec![0; 16_384])),
            send(frame(CONTINUATION, 0, 1, vec![0; 16_384]).repeat(16)), error(ENHANCE_YOUR_CALM);
        case("10.5.1", "a larger bound of headers makes larger blocks") =>
            limits(|limits| limits.max_header_bytes = 300 << 10),
            send([long_call(1, 290 << 10), data(1, END_STREAM, message("a"))]), echo(1, "a");
        case("10.5.1", "empty CONTINUATION frames without an end are a flood") =>
            send(frame(HEADERS, 0, 1, "")), send(frame(CONTINUATION, 0, 1, "").repeat(30_000)),
            error(ENHANCE_YOUR_CALM);
    }
}

/// A block in as many frames as it needs.
fn long_block(stream: u32, end: u8, block: Vec<u8>) -> Vec<u8> {
    let pieces: Vec<&[u8]> = block.chunks(16_384).collect();
    let last = pieces.len() - 1;
    let one = |(place, piece): (usize, &&[u8])| {
        let (kind, flags) = if place == 0 { (HEADERS, end) } else { (CONTINUATION, 0) };
        frame(kind, flags | if place == last { END_HEADERS } else { 0 }, stream, *piece)
    };
    pieces.iter().enumerate().flat_map(one).collect()
}

fn floods() -> Vec<Case> {
    let opened_and_reset_from = |first: u32, count: u32| {
        let streams = (first..first + count).map(|index| 1 + 2 * index);
        streams.flat_map(|stream| [headers(stream, 0, &CALL), reset(stream, CANCEL)].concat())
    };
    let opened_and_reset = |count: u32| opened_and_reset_from(0, count);
    let late_data = |stream: u32| {
        [headers(stream, 0, &CALL), reset(stream, CANCEL), data(stream, END_STREAM, message("a"))].concat()
    };
    let faulty = |name: &str, count: u32| {
        let streams = (0..count).map(|index| 1 + 2 * index);
        let faults = streams.flat_map(|stream| headers(stream, END_STREAM, &and(&[("connection", "close")])));
        let case = case("10.5", name).limits(|limits| limits.max_local_resets = 3);
        [1, 3, 5]
            .into_iter()
            .fold(case.send(faults.collect::<Vec<u8>>()), |case, stream| case.reset(stream, PROTOCOL_ERROR))
    };
    let in_pieces = || {
        let case = case("10.5", "resets in many small pieces are a flood too");
        (0..30_u32).fold(case.limits(|limits| limits.max_pending_resets = 10), |case, turn| {
            let resets = opened_and_reset_from(50 * turn, 50).collect::<Vec<u8>>();
            case.send(resets).wait(Duration::ZERO)
        })
    };
    let many = || {
        (0..100_u32).fold(case("10.5", "40,000 resets a second are no flood"), |case, turn| {
            let resets = opened_and_reset_from(2_000 * turn, 2_000).collect::<Vec<u8>>();
            case.wait(Duration::from_millis(50)).send(resets)
        })
    };
    cases! {
        case("10.5", "calls may be reset before they begin, within a bound") =>
            limits(|limits| limits.max_pending_resets = 10), send(opened_and_reset(10).collect::<Vec<u8>>()),
            nothing(), usable();
        case("10.5", "more resets of calls that have not begun are a flood") =>
            limits(|limits| limits.max_pending_resets = 10),
            send(opened_and_reset(1_011).collect::<Vec<u8>>()), error(ENHANCE_YOUR_CALM);
        case("10.5", "resets are counted by rate") => limits(|limits| limits.max_pending_resets = 10),
            send(opened_and_reset(10).collect::<Vec<u8>>()), wait(Duration::from_millis(10)),
            send(opened_and_reset_from(10, 10).collect::<Vec<u8>>()), nothing(), usable();
        case("10.5", "resets that have piled up while nobody read are no flood") =>
            limits(|limits| limits.max_pending_resets = 10), send(opened_and_reset(1).collect::<Vec<u8>>()),
            wait(Duration::from_millis(100)), send(opened_and_reset_from(1, 109).collect::<Vec<u8>>()),
            nothing(), usable();
        case("10.5", "resets of more than a second are a flood, however long nobody read") =>
            limits(|limits| limits.max_pending_resets = 10), send(opened_and_reset(1).collect::<Vec<u8>>()),
            wait(Duration::from_secs(5)), send(opened_and_reset_from(1, 1_011).collect::<Vec<u8>>()),
            error(ENHANCE_YOUR_CALM);
        in_pieces() => error(ENHANCE_YOUR_CALM);
        many() => usable();
        case("10.5", "late DATA of streams that the client has reset is no fault: any number may come") =>
            limits(|limits| limits.max_local_resets = 1), send([1, 3, 5, 7].map(late_data).concat()),
            reset(1, STREAM_CLOSED), reset(3, STREAM_CLOSED), reset(5, STREAM_CLOSED),
            reset(7, STREAM_CLOSED), send([1, 3, 5, 7].map(|stream| data(stream, END_STREAM, "z")).concat()),
            nothing(), usable();
        case("10.5", "the same of calls that have begun") => limits(|limits| limits.max_local_resets = 1),
            send([1, 3, 5].map(|stream| headers(stream, 0, &CALL)).concat()), nothing(),
            send([1, 3, 5].map(|stream| [reset(stream, CANCEL), data(stream, 0, "x")].concat()).concat()),
            reset(1, STREAM_CLOSED), reset(3, STREAM_CLOSED), reset(5, STREAM_CLOSED), usable();
        case("10.5", "the same of calls that were answered before their end") =>
            limits(|limits| limits.max_local_resets = 1),
            send([1, 3, 5].map(|stream| headers(stream, 0, &with(":method", "GET"))).concat()),
            http(1, "405"), http(3, "405"), http(5, "405"),
            send([1, 3, 5].map(|stream| [reset(stream, CANCEL), data(stream, 0, "x")].concat()).concat()),
            reset(1, STREAM_CLOSED), reset(3, STREAM_CLOSED), reset(5, STREAM_CLOSED), usable();
        case("10.5", "late DATA of streams that the client reset long ago counts") =>
            limits(|limits| (limits.max_local_resets, limits.max_pending_resets) = (1, 1100)),
            send(opened_and_reset(1_100).collect::<Vec<u8>>()), send([data(1, 0, "x"), data(3, 0, "x")]),
            reset(1, STREAM_CLOSED), error(ENHANCE_YOUR_CALM);
        case("10.5", "resets of calls that have begun count, too") =>
            limits(|limits| limits.max_pending_resets = 1),
            send([1, 3, 5].map(|stream| headers(stream, 0, &CALL)).concat()), nothing(),
            send(reset(1, CANCEL)), wait(Duration::from_millis(10)), send(reset(3, CANCEL)), nothing(),
            usable();
        case("10.5", "too many resets of calls that have begun are a flood") =>
            limits(|limits| limits.max_pending_resets = 1),
            send((0..102).map(|index| headers(1 + 2 * index, 0, &CALL)).collect::<Vec<_>>().concat()),
            nothing(), send((0..102).map(|index| reset(1 + 2 * index, CANCEL)).collect::<Vec<_>>().concat()),
            error(ENHANCE_YOUR_CALM);
        faulty("stream errors are borne within a bound", 3) => usable();
        faulty("more stream errors are a flood", 4) => error(ENHANCE_YOUR_CALM);
        case("10.5", "many SETTINGS are acknowledged, each once") =>
            send(settings(&[]).repeat(20_000)), acks(20_000), usable();
        case("10.5", "many empty DATA frames hold up nothing") =>
            send([headers(1, 0, &CALL), data(1, 0, "").repeat(20_000)]),
            send(data(1, END_STREAM, message("a"))), echo(1, "a");
        case("10.5", "a window that grows by single bytes holds up nothing") =>
            send([headers(1, 0, &CALL), window_update(1, 1).repeat(20_000)]),
            send(data(1, END_STREAM, message("a"))), echo(1, "a");
        case("10.5", "many PRIORITY frames hold up nothing") =>
            send(frame(PRIORITY, 0, 3, [0; 5]).repeat(20_000)), usable();
    }
}
