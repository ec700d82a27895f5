//! RFC 7541: what a client's encoder may do, and what its decoder may demand.

use fluke_hpack::encoder::encode_integer;

use super::ground::Ground;
use super::reactions::each;
use super::requests::{ONE, body, call, fields, headers, literal, plain, question, text};
use super::session::Session;
use super::{COMPRESSION, HEADER_TABLE_SIZE};
use crate::support::frames::END_STREAM;
use crate::support::grpc::unhex;

/// Sends a block with a question behind it, which is allowed.
fn asks(session: &mut Session, stream: u32, block: &[u8]) {
    session.send(&[headers(stream, 0, block), body(stream, &question())].concat());
    session.ended(stream).allows();
}

/// A header that enters the table.
fn indexed(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0x40][..], &text(name), &text(value)].concat()
}

/// The header at this place of both tables.
fn at(index: usize) -> Vec<u8> {
    let mut bytes = encode_integer(index, 7);
    bytes[0] |= 0x80;
    bytes
}

fn size_update(size: usize) -> Vec<u8> {
    let mut bytes = encode_integer(size, 5);
    bytes[0] |= 0x20;
    bytes
}

/// As RFC 7541, 5.2 has them.
fn huffman(bytes: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    httlib_huffman::encode(bytes, &mut coded).unwrap();
    let mut text = encode_integer(coded.len(), 7);
    text[0] |= 0x80;
    [text, coded].concat()
}

#[test]
fn a_table_used_by_many_calls() {
    let ground = Ground::new();
    let mut session = ground.open();
    let mut encoder = fluke_hpack::Encoder::new();
    let mut lengths = Vec::new();
    for call in 0..50_u32 {
        let count = format!("{}", call % 7);
        let fields = [fields(ONE), vec![("x-count", &count), ("x-call", "the same")]].concat();
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let block = encoder.encode(fields);
        lengths.push(block.len());
        asks(&mut session, 1 + 2 * call, &block);
    }
    assert!(lengths[49] < lengths[0], "the table is used: {lengths:?}");
    ground.serves();
}

/// Entries of some 100 bytes, so that old ones leave the table all the time.
#[test]
fn a_table_that_overflows() {
    let ground = Ground::new();
    let mut session = ground.open();
    let mut encoder = fluke_hpack::Encoder::new();
    for call in 0..100_u32 {
        let value = format!("{call:0>100}");
        let fields = [fields(ONE), vec![("x-long", &value), ("x-longer", &value)]].concat();
        let block = encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        asks(&mut session, 1 + 2 * call, &block);
    }
    ground.serves();
}

/// All a call's fields from the table, the last entry it can hold, and an entry larger than the table, which
/// empties it.
#[test]
fn the_edges_of_a_table() {
    let ground = Ground::new();
    let mut session = ground.open();
    let names = fields(ONE);
    let enter: Vec<u8> =
        names.iter().flat_map(|(name, value)| indexed(name.as_bytes(), value.as_bytes())).collect();
    asks(&mut session, 1, &enter);
    let again: Vec<u8> = (0..names.len()).rev().flat_map(|index| at(62 + index)).collect();
    asks(&mut session, 3, &again);
    let full = indexed(b"x", &[b'y'; 4096 - 32 - 1]);
    asks(&mut session, 5, &[plain(&names), full, at(62)].concat());
    let larger = indexed(b"x", &[b'y'; 4096 - 32]);
    asks(&mut session, 7, &[plain(&names), larger, indexed(b"small", b"1"), at(62)].concat());
    let gone = [plain(&names), at(63)].concat();
    session.ends_connection("an entry that has left", &headers(9, 0, &gone), COMPRESSION);
    ground.serves();
}

/// A name from a table with a value of its own, in each of the three representations, from either table.
#[test]
fn names_from_the_tables() {
    let ground = Ground::new();
    let mut session = ground.open();
    let value = |prefix: &[u8]| [prefix, &text(b"a value")].concat();
    let block = [
        plain(&fields(ONE)),
        indexed(b"x-own", b"1"),
        value(&[0x40 | 58]),
        value(&[0x0f, 58 - 15]),
        value(&[0x1f, 58 - 15]),
        // One has entered since, so that ours is the second.
        value(&[0x7f, 0]),
        value(&[0x0f, 64 - 15]),
        value(&[0x1f, 64 - 15]),
    ];
    asks(&mut session, 1, &block.concat());
    ground.serves();
}

#[test]
fn a_table_that_is_emptied_and_grows_again() {
    let ground = Ground::new();
    let mut session = ground.open();
    let (plain, entry) = (plain(&fields(ONE)), indexed(b"x-a", b"1"));
    asks(&mut session, 1, &[&plain[..], &entry].concat());
    asks(&mut session, 3, &[&plain[..], &at(62)].concat());
    asks(&mut session, 5, &[&size_update(0)[..], &plain, &entry].concat());
    asks(&mut session, 7, &[&size_update(0)[..], &size_update(4096), &plain, &entry, &at(62)].concat());
    asks(&mut session, 9, &[&plain[..], &at(62)].concat());
    asks(&mut session, 11, &[&size_update(36)[..], &plain, &at(62)].concat());
    let fault = headers(13, 0, &[&size_update(35)[..], &plain, &at(62)].concat());
    session.ends_connection("it no longer fits", &fault, COMPRESSION);
    ground.serves();
}

/// RFC 7541, C.4, with what makes a call of ours around it.
#[test]
fn huffmans_code() {
    let ground = Ground::new();
    let mut session = ground.open();
    let (authority, rest) = ("418cf1e3c2e5f23a6ba0ab90f4ff", "83 86");
    let path = [&[0x04][..], &huffman(ONE.as_bytes())].concat();
    let kind = [&[0x0f, 31 - 15][..], &huffman(b"application/grpc")].concat();
    let pseudo = [unhex(&rest.replace(' ', "")), path].concat();
    let begin = |authority: &str| [&pseudo[..], &unhex(authority), &kind].concat();
    asks(&mut session, 1, &begin(authority));
    asks(&mut session, 3, &[begin("be"), unhex("5886a8eb10649cbf")].concat());
    asks(&mut session, 5, &[begin("bf"), unhex("408825a849e95ba97d7f8925a849e95bb8e8b4bf")].concat());
    // Every byte that a value may have, and names in the code too.
    let all: Vec<u8> = (0x20..0x7f).chain(0x80..=0xff).collect();
    let odd = [&[0x10][..], &huffman(b"x-all"), &huffman(&[&b"a"[..], &all, b"z"].concat())].concat();
    asks(&mut session, 7, &[begin("c0"), odd, vec![0x00], huffman(b"x-none"), vec![0x80]].concat());
    ground.serves();
}

#[test]
fn blocks_that_cannot_be_read() {
    let ground = Ground::new();
    let names = plain(&fields(ONE));
    let rows: [(&str, Vec<u8>); 16] = [
        ("index 0", vec![0x80]),
        ("an index beyond both tables", at(62)),
        ("an index far beyond", at(1 << 20)),
        ("a name's index beyond both tables", vec![0x7f, 0, 1, b'a']),
        ("a number without an end", vec![0xff; 12]),
        ("a number with too many zeros", [&[0xff][..], &[0x80; 20], &[0]].concat()),
        ("a number cut off", vec![0xff, 0x80]),
        ("a string longer than its block", vec![0, 3, b'x', b'-']),
        ("a name without a value", vec![0, 1, b'x']),
        ("a length cut off", vec![0, 0x7f]),
        ("a table larger than allowed", size_update(4097)),
        ("a table far larger", size_update(1 << 30)),
        ("the code's own end", vec![0, 1, b'x', 0x84, 0xff, 0xff, 0xff, 0xff]),
        ("a code cut off by zeros", vec![0, 1, b'x', 0x81, 0x00]),
        ("more than seven bits behind a code", vec![0, 1, b'x', 0x82, 0x1f, 0xff]),
        ("a string with a huge length", [&[0, 1, b'x', 0x7f][..], &[0xff, 0xff, 0xff, 0xff, 0x07]].concat()),
    ];
    each(rows, |(what, bytes)| {
        let updates = bytes[0] & 0xe0 == 0x20;
        let block = if updates { [bytes, names.clone()].concat() } else { [names.clone(), bytes].concat() };
        let mut session = ground.open();
        session.send(&call(1));
        session.ended(1).allows();
        session.ends_connection(what, &headers(3, 0, &block), COMPRESSION);
        ground.serves();
    });
}

/// The block of a request that is refused, or of trailers, counts for the table like any other.
#[test]
fn blocks_of_calls_that_fail_count_for_the_table() {
    let ground = Ground::new();
    let mut session = ground.open();
    let names = plain(&fields(ONE));
    let malformed = [literal(b"te", b"gzip"), indexed(b"x-a", b"1")].concat();
    session.send(&headers(1, 0, &[&names[..], &malformed].concat()));
    asks(&mut session, 3, &[&names[..], &at(62)].concat());
    session.send(&headers(5, 0, &names));
    session.send(&headers(5, END_STREAM, &indexed(b"x-b", b"2")));
    asks(&mut session, 7, &[&names[..], &at(62), &at(63)].concat());
    ground.serves();
}

/// The answers' decoder demands what RFC 9113, 4.3.1 says: see [`super::blocks`].
#[test]
fn answers_for_decoders_with_little_room() {
    let ground = Ground::new();
    for sizes in [[0, 0], [100, 100], [0, 4096], [100, 0], [4096, 0], [65_536, 50], [0, 100]] {
        let mut session = ground.open_with(&[(HEADER_TABLE_SIZE, sizes[0])]);
        for stream in [1, 3] {
            session.send(&call(stream));
            session.ended(stream).allows();
        }
        session.set(&[(HEADER_TABLE_SIZE, sizes[1])]);
        for stream in [5, 7] {
            session.send(&call(stream));
            session.ended(stream).allows();
        }
        // Down and up again before the next answer: the smallest is what counts.
        session.set(&[(HEADER_TABLE_SIZE, 10)]);
        session.set(&[(HEADER_TABLE_SIZE, 4096)]);
        for stream in [9, 11] {
            session.send(&call(stream));
            session.ended(stream).allows();
        }
    }
    ground.serves();
}
