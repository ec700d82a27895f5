//! 2: the tables. What a block says is seen in how its request is served.

use super::*;
use crate::case::*;

pub(crate) fn cases() -> Vec<Case> {
    let path = || insert(":path", "/echo.Echo/Unary");
    let rest = block(&[CALL[0], CALL[1]]);
    // The path comes out of the table, so that the call is only served if the index is right.
    let by_index = |stream: u32, index: usize| {
        let fields = [rest.clone(), indexed(index), block(&CALL[3..])].concat();
        [frame(HEADERS, END_HEADERS, stream, fields), data(stream, END_STREAM, message("a"))].concat()
    };
    let inserting = |stream: u32, more: &[u8]| {
        let fields = [rest.clone(), path(), block(&CALL[3..]), more.to_vec()].concat();
        [frame(HEADERS, END_HEADERS, stream, fields), data(stream, END_STREAM, message("a"))].concat()
    };
    let indices = |range: std::ops::RangeInclusive<usize>| range.flat_map(indexed).collect::<Vec<u8>>();
    let static_call = [&[0x83, 0x86][..], &block(&CALL[2..])].concat();
    let wrong = |name: &str, index: usize| {
        case("2.3.3", name).send(call_with(1, &indexed(index))).error(COMPRESSION_ERROR)
    };
    cases! {
        case("2.2", "the dynamic table lives as long as the connection") => send(inserting(1, &[])),
            echo(1, "a"), send(by_index(3, 62)), echo(3, "a"), send(by_index(5, 62)), echo(5, "a");
        case("2.2", "a field can be referred to in its own block") =>
            send(call_with(1, &[insert("x", "y"), indexed(62), indexed(62)].concat())), echo(1, "a");
        case("2.3.1", "methods and schemes of the static table are known") =>
            send([frame(HEADERS, END_HEADERS, 1, static_call), data(1, END_STREAM, message("a"))]),
            echo(1, "a");
        case("2.3.1", "index 2 is :method GET") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, [0x82, 0x86, 0x84])), http(1, "405");
        case("2.3.1", "index 7 is :scheme https") =>
            send(frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                [&[0x83, 0x87][..], &block(&CALL[2..])].concat(),
            )), status(1, UNIMPLEMENTED);
        case("2.3.1", "index 4 is :path /, and index 5 /index.html") =>
            send(frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                [&[0x83, 0x86, 0x84][..], &block(&CALL[3..])].concat(),
            )),
            send(frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                3,
                [&[0x83, 0x86, 0x85][..], &block(&CALL[3..])].concat(),
            )), status(1, UNIMPLEMENTED), status(3, UNIMPLEMENTED);
        case("2.3.1", "index 1 is an empty :authority") => send(call_behind(1, &indexed(1))), echo(1, "a");
        case("2.3.1", "indices 8 to 14 are :status, which no request has") =>
            send(call_behind(1, &indexed(8))), reset(1, PROTOCOL_ERROR), send(call_behind(3, &indexed(14))),
            reset(3, PROTOCOL_ERROR);
        case("2.3.1", "indices 15 to 27 are fields that mean nothing here") =>
            send(call_with(1, &indices(15..=27))), echo(1, "a");
        case("2.3.1", "index 28 is content-length, which cannot be empty") =>
            send(call_with(1, &indexed(28))), reset(1, PROTOCOL_ERROR);
        case("2.3.1", "indices 29, 30 and 32 to 56 are fields that mean nothing here") =>
            send(call_with(1, &[indices(29..=30), indices(32..=56)].concat())), echo(1, "a");
        case("2.3.1", "index 31 is content-type, which cannot be empty") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, [block(&CALL[..3]), indexed(31)].concat())),
            http(1, "415");
        case("2.3.1", "index 57 is transfer-encoding, which HTTP/2 does not have") =>
            send(call_with(1, &indexed(57))), reset(1, PROTOCOL_ERROR);
        case("2.3.1", "indices 58 to 61 are fields that mean nothing here") =>
            send(call_with(1, &indices(58..=61))), echo(1, "a");
        case("2.3.2", "the newest field is the first") =>
            send(inserting(1, &[insert("x", "1"), insert("x", "2")].concat())), echo(1, "a"),
            send(by_index(3, 64)), echo(3, "a");
        case("2.3.2", "a field may be in the table twice") =>
            send(inserting(1, &path_again())), reset(1, PROTOCOL_ERROR), send(by_index(3, 63)), echo(3, "a"),
            send(by_index(5, 62)), echo(5, "a");
        wrong("index 62 of an empty dynamic table is an error", 62);
        wrong("index 0 is an error", 0);
        wrong("index 1,000 is an error", 1_000);
        wrong("the largest index is an error", 0x0fff_ffff);
        case("2.3.3", "an index one behind the last field is an error") =>
            send(inserting(1, &insert("x", "y"))), echo(1, "a"), send(by_index(3, 63)), echo(3, "a"),
            send(by_index(5, 64)), error(COMPRESSION_ERROR);
        case("2.3.3", "a literal whose name has an index behind the last field is an error") =>
            send(call_with(1, &[&integer(0x40, 6, 62)[..], &[1, b'v']].concat())), error(COMPRESSION_ERROR);
    }
}

/// As a regular field it is misplaced, so that its request is malformed; the table takes it in all the same.
fn path_again() -> Vec<u8> {
    insert(":path", "/echo.Echo/Unary")
}
