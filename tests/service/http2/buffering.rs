//! Messages that arrive slowly or never. The memory that they use in the server is bounded, and calls with whole
//! messages do not wait for them.

use std::collections::HashMap;

use super::floods::Attacked;
use super::ground::Ground;
use super::requests::{BATCH, ONE, call, data, head, questions};
use crate::support::frames::{
    DATA, HEADERS, RST_STREAM, Raw, SETTINGS, WINDOW_UPDATE, frame, number, settings_of,
};

/// The memory that the server may hold, whatever its clients announce: the budget of 64 MiB, and everything else.
const MOST: u64 = 160 << 20;

const INITIAL_WINDOW_SIZE: u16 = 4;

/// A client that announces messages and sends them as far as its credit goes, but for the last byte.
struct Slow {
    raw: Raw,
    window: i64,
    initial: i64,
    /// Bytes of each stream that are to be sent, and what its window is beyond the initial one.
    streams: HashMap<u32, (usize, i64)>,
}

impl Slow {
    fn open(attacked: &Attacked, streams: u32, path: &str, announced: usize, sent: usize) -> Self {
        let raw = Raw::open(attacked.address);
        let prefix = [&[0][..], &(announced as u32).to_be_bytes()].concat();
        let mut slow = Self { raw, window: 65_535, initial: 65_535, streams: HashMap::new() };
        for id in (0..streams).map(|at| 1 + 2 * at) {
            slow.raw.send(&[head(id, path), data(id, &prefix)].concat());
            slow.window -= 5;
            slow.streams.insert(id, (sent, -5));
        }
        slow
    }

    /// Sends until there is neither credit nor anything to send.
    fn send_all(&mut self) {
        let quiet = std::time::Duration::from_millis(400);
        self.raw.stream().set_read_timeout(Some(quiet)).unwrap();
        loop {
            let mut stalled = true;
            for (id, (missing, window)) in &mut self.streams {
                let credit = self.window.min(self.initial + *window).max(0) as usize;
                let length = (*missing).min(credit).min(16_384);
                if length > 0 {
                    self.raw.send(&data(*id, &vec![7; length]));
                    *missing -= length;
                    *window -= length as i64;
                    self.window -= length as i64;
                    stalled = false;
                }
            }
            if stalled && !self.read() {
                return;
            }
        }
    }

    /// Takes the next frame, if one comes.
    fn read(&mut self) -> bool {
        let Ok(frame) = self.raw.read() else { return false };
        match frame.kind {
            WINDOW_UPDATE if frame.stream == 0 => self.window += i64::from(number(&frame.payload)),
            WINDOW_UPDATE => {
                if let Some((_, window)) = self.streams.get_mut(&frame.stream) {
                    *window += i64::from(number(&frame.payload));
                }
            }
            SETTINGS => {
                if let Some(size) = settings_of(&frame.payload).get(&INITIAL_WINDOW_SIZE) {
                    self.initial = i64::from(*size);
                }
            }
            // The call was ended.
            HEADERS | RST_STREAM => drop(self.streams.remove(&frame.stream)),
            _ => {}
        }
        true
    }
}

fn hold(
    attacked: &Attacked,
    connections: u32,
    streams: u32,
    path: &str,
    announced: usize,
    sent: usize,
) -> u64 {
    let mut slow: Vec<Slow> =
        (0..connections).map(|_| Slow::open(attacked, streams, path, announced, sent)).collect();
    std::thread::scope(|scope| {
        for group in slow.chunks_mut(50) {
            scope.spawn(|| group.iter_mut().for_each(Slow::send_all));
        }
    });
    let memory = attacked.memory();
    attacked.serves();
    memory
}

/// 580 MiB once: bytes of an incomplete message returned their credit as soon as they were copied.
#[test]
fn many_streams_of_incomplete_messages_hold_no_more_than_the_budget() {
    let attacked = Attacked::start();
    let memory = hold(&attacked, 8, 1024, ONE, 64 << 10, 60_000);
    println!("resident with 8 x 1,024 x 60 KB of an announced 64 KiB: {} MiB", memory >> 20);
    assert!(memory < MOST, "{memory}");
}

#[test]
fn many_connections_with_an_incomplete_batch_hold_no_more_than_the_budget() {
    let attacked = Attacked::start();
    let memory = hold(&attacked, 300, 1, BATCH, 1 << 20, (1 << 20) - 1);
    println!("resident with 300 x 1 MiB but for a byte: {} MiB", memory >> 20);
    assert!(memory < MOST, "{memory}");
}

/// A batch of a thousand questions in 420 KB.
fn large_batch() -> Vec<u8> {
    let mut batch = questions(1000)[5..].to_vec();
    // An unknown field, which is skipped.
    let padding = 420_000 - batch.len();
    let mut length = padding as u32;
    batch.push(15 << 3 | 2);
    while length >= 0x80 {
        batch.push(length as u8 | 0x80);
        length >>= 7;
    }
    batch.push(length as u8);
    batch.extend(vec![0; padding]);
    [&[0][..], &(batch.len() as u32).to_be_bytes(), &batch].concat()
}

/// Each such batch once waited for one of 64 places, which streams with five bytes of a message held for 10 s.
#[test]
fn streams_that_only_announce_messages_delay_no_batch() {
    let attacked = Attacked::start();
    let slow: Vec<Slow> = (0..2).map(|_| Slow::open(&attacked, 1024, BATCH, 1 << 20, 0)).collect();
    let started = std::time::Instant::now();
    let mut honest = super::session::Session::open(attacked.address);
    honest.send(&head(1, BATCH));
    honest.pour(1, &large_batch(), 1);
    let answer = honest.ended(1);
    println!("an honest batch of 420 KB beside 2 x 1,024 announcements: {:?}", started.elapsed());
    assert_eq!(answer.code(), "0");
    drop(slow);
}

/// A batch that arrives in pieces, behind a call that has made a decision of the same turn, once was never decided: it
/// did not fit into the rest of the turn, and nothing ended the turn.
#[test]
fn a_large_batch_after_a_call_is_decided() {
    let ground = Ground::new();
    let mut session = ground.open();
    session.send(&call(1));
    session.allow(&[1]);
    let batch = large_batch();
    session.send(&head(3, BATCH));
    for piece in batch.chunks(batch.len().div_ceil(3)) {
        session.pour(3, piece, 0);
        session.settle();
    }
    session.send(&frame(DATA, 1, 3, &[]));
    assert_eq!(session.ended(3).code(), "0");
}

#[test]
fn batches_that_are_interleaved_on_one_connection_all_succeed() {
    let ground = Ground::new();
    let mut session = ground.open();
    let batch = large_batch();
    let streams: Vec<u32> = (0..16).map(|at| 1 + 2 * at).collect();
    for stream in &streams {
        session.send(&head(*stream, BATCH));
    }
    let pieces: Vec<&[u8]> = batch.chunks(10_000).collect();
    for (at, piece) in pieces.iter().enumerate() {
        for stream in &streams {
            session.pour(*stream, piece, u8::from(at + 1 == pieces.len()));
        }
    }
    for stream in &streams {
        assert_eq!(session.ended(*stream).code(), "0", "{stream}");
    }
    ground.serves();
}
