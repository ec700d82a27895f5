//! Bytes that stand for more than they are: they may cost a multiple of what as many bytes of calls cost, but
//! a small one. It is the server's CPU time that counts, so that it does not matter what else the machine does.

use std::io::Read as _;

use weir_config::ServerLimits;

use super::floods::{Attacked, OPENING};
use super::ground::Ground;
use super::requests::{ONE, STREAM, call, fields, head, headers, literal, plain, text};
use super::{HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE};
use crate::support::frames::{CONTINUATION, END_HEADERS, END_STREAM, HEADERS, Raw, frame, ping, settings};

/// Bytes that are sent, about.
const SENT: usize = 1 << 20;

/// Returns the CPU time of a process for these bytes on a connection of their own, in hundredths of a second.
fn cost(attacked: &Attacked, opening: &[u8], bytes: &[u8]) -> u128 {
    let mut raw = Raw::connect(attacked.address);
    raw.send(&[&OPENING.concat()[..], opening, &ping(*b"prepared")].concat());
    while raw.read().unwrap().payload != b"prepared" {}
    let before = attacked.cpu();
    let mut reader = raw.stream().try_clone().unwrap();
    let read = std::thread::spawn(move || {
        // Its last word, wherever that lies: no answer has the same bytes.
        let (mut read, mut room) = (Vec::new(), vec![0; 64 << 10]);
        while !read.windows(8).any(|it| it == b"the end!") {
            let keep = read.len().saturating_sub(8);
            read.drain(..keep);
            match reader.read(&mut room).unwrap() {
                0 => panic!("the connection ended"),
                length => read.extend_from_slice(&room[..length]),
            }
        }
    });
    raw.send(&[bytes, &ping(*b"the end!")].concat());
    read.join().unwrap();
    attacked.cpu() - before
}

/// As many of these as make up what is sent.
fn many(next: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut streams = (0..).map(|index| 3 + 2 * index);
    while bytes.len() < SENT {
        bytes.extend(streams.next().map(&next).unwrap());
    }
    bytes
}

#[test]
fn no_bytes_cost_much_more_than_calls() {
    let attacked = Attacked::start();
    let other = plain(&fields("/no"));
    let with = |more: Vec<u8>| headers(1, END_STREAM, &[other.clone(), more].concat());
    let block = |stream, piece: &[u8], times| {
        headers(stream, END_STREAM, &[&other, &piece.repeat(times)[..]].concat())
    };
    let name = with([&[0x40][..], &text(&[b'y'; 4000]), &text(b"")].concat());
    let open: Vec<u8> = (0..1000).flat_map(|index| head(1 + 2 * index, STREAM)).collect();
    let window = |name| (0..2000).map(|index| (name, 65_535 - index)).collect::<Vec<_>>();
    let rows: [(&str, &[u8], Vec<u8>); 6] = [
        ("fields of a long name that enter the table", &name, many(|id| block(id, &[0x7e, 0], 8000))),
        ("and that do not", &name, many(|id| block(id, &[0x0f, 0x2f, 0], 5000))),
        ("long fields from the table", &name, many(|id| block(id, &[0xbe], 16_000))),
        (
            "calls with long fields",
            &name,
            many(|id| headers(id, END_STREAM, &[0x83, 0x86, 0x84, 0xbe, 0xbe, 0xbe])),
        ),
        ("windows of many streams", &open, many(|_| settings(&window(INITIAL_WINDOW_SIZE)))),
        ("sizes of the table", &open, many(|_| settings(&window(HEADER_TABLE_SIZE)))),
    ];
    let calls = cost(&attacked, &[], &many(call));
    for (what, opening, bytes) in rows {
        let cost = cost(&attacked, opening, &bytes);
        println!("{what}: {cost}, calls {calls}");
        assert!(cost <= 10 * calls + 20, "{what}: {cost} hundredths of a second; calls: {calls}");
    }
}

/// More than a map of headers takes, in as few bytes as they can have.
#[test]
fn tens_of_thousands_of_headers() {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";
    let ground = Ground::limited(ServerLimits { max_header_bytes: 1 << 20, ..ServerLimits::default() });
    for path in [ONE, "/grpc.health.v1.Health/Check"] {
        let name = |index: usize| [10, 5, 0].map(|shift| LETTERS[index >> shift & 31]);
        let more = (0..29_000).flat_map(|index| literal(&name(index), b""));
        let block: Vec<u8> = plain(&fields(path)).into_iter().chain(more).collect();
        let mut pieces = block.chunks(16_000).peekable();
        let mut bytes = frame(HEADERS, END_STREAM, 1, pieces.next().unwrap());
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            bytes.extend(frame(CONTINUATION, flags, 1, piece));
        }
        ground.open().does_not_mind(3, &bytes);
    }
    ground.serves();
}
