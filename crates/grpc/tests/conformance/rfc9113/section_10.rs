//! 10.5: what a client may make the server do, and where it ends.

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
    let references = |count: usize| [block(&CALL), vec![0x80 | 62; count]].concat();
    vec![
        case("10.5.1", "a header list may be as long as announced").send(call(16 << 10)).echo(1, "a"),
        case("10.5.1", "one byte more is refused, and the connection goes on")
            .send(call((16 << 10) + 1))
            .status_says(1, RESOURCE_EXHAUSTED, "16384")
            .reset(1, NO_ERROR)
            .usable(),
        case("10.5.1", "a small block that stands for a long list is refused")
            .send(frame(HEADERS, END_HEADERS | END_STREAM, 1, {
                let mut bomb = [block(&CALL), vec![0x40, 1, b'x']].concat();
                string(&mut bomb, &[b'y'; 3_000]);
                [bomb, vec![0x80 | 62; 10]].concat()
            }))
            .status(1, RESOURCE_EXHAUSTED)
            .usable(),
        case("10.5.1", "a refused list changes the dynamic table like any other")
            .send(frame(HEADERS, END_HEADERS | END_STREAM, 1, {
                let mut bomb = [block(&CALL), vec![0x40, 1, b'x']].concat();
                string(&mut bomb, &[b'y'; 3_000]);
                [bomb, vec![0x80 | 62; 10]].concat()
            }))
            .status(1, RESOURCE_EXHAUSTED)
            .send([frame(HEADERS, END_HEADERS, 3, references(4)), data(3, END_STREAM, message("a"))].concat())
            .echo(3, "a"),
        case("10.5.1", "long trailers end no call")
            .send([headers(1, 0, &CALL), data(1, 0, message("a"))].concat())
            .send(headers(1, END_STREAM, &[("x", &"y".repeat(16_300)), ("x", "z")]))
            .echo(1, "a"),
        case("10.5.1", "a block without an end is a flood")
            .send(frame(HEADERS, 0, 1, vec![0; 16_384]))
            .send(frame(CONTINUATION, 0, 1, vec![0; 16_384]).repeat(4))
            .error(ENHANCE_YOUR_CALM),
        case("10.5.1", "empty CONTINUATION frames without an end are a flood")
            .send(frame(HEADERS, 0, 1, ""))
            .send(frame(CONTINUATION, 0, 1, "").repeat(10_000))
            .error(ENHANCE_YOUR_CALM),
    ]
}

fn floods() -> Vec<Case> {
    let opened_and_reset = |count: u32| {
        (0..count).flat_map(|index| [headers(1 + 2 * index, 0, &CALL), reset(1 + 2 * index, CANCEL)].concat())
    };
    let faulty = |count: u32| {
        (0..count).flat_map(|index| headers(1 + 2 * index, END_STREAM, &and(&[("connection", "close")])))
    };
    vec![
        case("10.5", "calls may be reset before they begin, within a bound")
            .limits(|limits| limits.max_pending_resets = 10)
            .send(opened_and_reset(10).collect::<Vec<u8>>())
            .nothing()
            .usable(),
        case("10.5", "more resets of calls that have not begun are a flood")
            .limits(|limits| limits.max_pending_resets = 10)
            .send(opened_and_reset(11).collect::<Vec<u8>>())
            .error(ENHANCE_YOUR_CALM),
        case("10.5", "resets of calls that have begun are no flood")
            .limits(|limits| limits.max_pending_resets = 1)
            .send(headers(1, 0, &CALL))
            .nothing()
            .send([reset(1, CANCEL), headers(3, 0, &CALL)].concat())
            .nothing()
            .send([reset(3, CANCEL), headers(5, 0, &CALL)].concat())
            .nothing()
            .send(reset(5, CANCEL))
            .usable(),
        (0..3_u32)
            .map(|index| 1 + 2 * index)
            .fold(
                case("10.5", "stream errors are borne within a bound")
                    .limits(|limits| limits.max_local_resets = 3)
                    .send(faulty(3).collect::<Vec<u8>>()),
                |case, stream| case.reset(stream, PROTOCOL_ERROR),
            )
            .usable(),
        (0..3_u32)
            .map(|index| 1 + 2 * index)
            .fold(
                case("10.5", "more stream errors are a flood")
                    .limits(|limits| limits.max_local_resets = 3)
                    .send(faulty(4).collect::<Vec<u8>>()),
                |case, stream| case.reset(stream, PROTOCOL_ERROR),
            )
            .error(ENHANCE_YOUR_CALM),
        case("10.5", "many SETTINGS are acknowledged, each once")
            .send(settings(&[]).repeat(20_000))
            .acks(20_000)
            .usable(),
        case("10.5", "many empty DATA frames hold up nothing")
            .send([headers(1, 0, &CALL), data(1, 0, "").repeat(20_000)].concat())
            .send(data(1, END_STREAM, message("a")))
            .echo(1, "a"),
        case("10.5", "a window that grows by single bytes holds up nothing")
            .send([headers(1, 0, &CALL), window_update(1, 1).repeat(20_000)].concat())
            .send(data(1, END_STREAM, message("a")))
            .echo(1, "a"),
        case("10.5", "many PRIORITY frames hold up nothing")
            .send(frame(PRIORITY, 0, 3, [0; 5]).repeat(20_000))
            .usable(),
    ]
}
