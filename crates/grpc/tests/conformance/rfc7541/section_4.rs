//! 4: the size of the dynamic table, and what is evicted.

use super::*;
use crate::case::*;

/// SETTINGS_HEADER_TABLE_SIZE of the server, which announces no other.
const TABLE: usize = 4_096;

/// A field that counts this many bytes in the table (4.1).
fn entry(bytes: usize) -> Vec<u8> {
    insert("x", &"v".repeat(bytes - 33))
}

pub(crate) fn cases() -> Vec<Case> {
    let many = |count: usize, bytes: usize| entry(bytes).repeat(count);
    let known = |section, name: &str, inserted: Vec<u8>, last: usize| {
        case(section, name)
            .send(call_with(1, &inserted))
            .echo(1, "a")
            .send(call_with(3, &indexed(last)))
            .echo(3, "a")
    };
    let evicted = |section, name: &str, inserted: Vec<u8>, beyond: usize| {
        case(section, name)
            .send(call_with(1, &inserted))
            .echo(1, "a")
            .send(call_with(3, &indexed(beyond)))
            .error(COMPRESSION_ERROR)
    };
    // The name of the oldest entry, which its own insertion evicts.
    let own_name = || {
        let mut bytes = integer(0x40, 6, 62);
        string(&mut bytes, &[b'w'; TABLE - 33]);
        bytes
    };
    cases! {
        known("4.1", "a field counts its name, its value and 32 bytes: 16 of 256 fit", many(16, 256),
            61 + 16);
        evicted("4.1", "the 17th evicts the first", many(17, 256), 61 + 17);
        evicted("4.1", "one byte too many evicts the first", [many(15, 256), entry(257)].concat(), 61 + 16);
        known("4.1", "a field may fill the table", entry(TABLE), 62);
        evicted("4.1", "the smallest fields count 33 bytes: 124 fit, and the 125th evicts the first",
            entry(33).repeat(125), 61 + 125);
        known("4.1", "124 fields of 33 bytes fit", entry(33).repeat(125), 61 + 124);
        case("4.2", "the table may be as large as announced") =>
            send(call_behind(1, &resize(TABLE))), echo(1, "a");
        case("4.2", "a larger table than announced is an error") =>
            send(call_behind(1, &resize(TABLE + 1))), error(COMPRESSION_ERROR);
        case("4.2", "a much larger table than announced is an error") =>
            send(call_behind(1, &resize(1 << 27))), error(COMPRESSION_ERROR);
        case("4.2", "two updates may begin a block") =>
            send(call_behind(1, &[resize(0), resize(TABLE)].concat())), echo(1, "a");
        case("4.2", "an update behind a field is an error") =>
            send(call_with(1, &resize(100))), error(COMPRESSION_ERROR);
        case("4.2", "an update between two fields is an error") =>
            send(frame(
                HEADERS,
                END_HEADERS,
                1,
                [block(&CALL[..2]), resize(100), block(&CALL[2..])].concat(),
            )), error(COMPRESSION_ERROR);
        case("4.2", "an update may begin trailers") => send([headers(1, 0, &CALL), data(1, 0, message("a"))]),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, [resize(0), insert("x", "y")].concat())),
            echo(1, "a"), send(call_with(3, &indexed(62))), error(COMPRESSION_ERROR);
        case("4.2", "a block may be only an update") =>
            send([headers(1, 0, &CALL), data(1, 0, message("a"))]),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, resize(0))), echo(1, "a");
        case("4.3", "a smaller size evicts what does not fit") => send(call_with(1, &many(4, 256))),
            echo(1, "a"), send(call_behind(3, &[resize(512), vec![]].concat())), echo(3, "a"),
            send(call_with(5, &indexed(63))), echo(5, "a"), send(call_with(7, &indexed(64))),
            error(COMPRESSION_ERROR);
        case("4.3", "size 0 evicts everything") => send(call_with(1, &insert("x", "y"))), echo(1, "a"),
            send(call_behind(3, &[resize(0), resize(TABLE)].concat())), echo(3, "a"),
            send(call_with(5, &indexed(62))), error(COMPRESSION_ERROR);
        case("4.3", "a larger size keeps what is there") => send(call_behind(1, &resize(512))),
            send(call_with(3, &insert("x", "y"))), send(call_behind(5, &resize(TABLE))),
            send(call_with(7, &indexed(62))), echo(1, "a"), echo(3, "a"), echo(5, "a"), echo(7, "a");
        case("4.3", "an update holds for all later blocks") => send(call_behind(1, &resize(40))),
            send(call_with(3, &[insert("x", "1"), insert("x", "2")].concat())),
            send(call_with(5, &indexed(63))), echo(1, "a"), echo(3, "a"), error(COMPRESSION_ERROR);
        evicted("4.4", "a field larger than the table empties it",
            [insert("x", "y"), entry(TABLE + 1)].concat(), 62);
        known("4.4", "the table takes in fields after one that was too large",
            [entry(TABLE + 1), insert("x", "y")].concat(), 62);
        known("4.4", "a field may evict the entry whose name it has", [entry(100), own_name()].concat(),
            62);
        evicted("4.4", "that entry is gone then", [entry(100), own_name()].concat(), 63);
        evicted("4.4", "a table of size 0 takes in nothing", Vec::new(), 62);
        case("4.4", "an insertion into a table of size 0 is no error") =>
            send(call_behind(1, &[resize(0), insert(":authority", "a")].concat())), echo(1, "a"),
            send(call_with(3, &indexed(62))), error(COMPRESSION_ERROR);
    }
}
