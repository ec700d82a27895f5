//! An encoder that does at random whatever RFC 7541 lets it, for many calls of one connection: each is read as
//! it was meant, or its path would be another's.

use std::collections::VecDeque;

use fluke_hpack::encoder::encode_integer;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::ground::Ground;
use super::requests::{ONE, body, fields, headers, question, text};

/// Makes its choices by what it is given.
struct Encoder<'a> {
    /// The newest first.
    table: VecDeque<(String, String)>,
    room: usize,
    choices: std::iter::Cycle<std::slice::Iter<'a, u16>>,
}

impl Encoder<'_> {
    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        if self.chooses(8) == 0 {
            for _ in 0..=self.chooses(2) {
                self.room = [0, 33, 100, 300, 1000, 4096][self.chooses(6)];
                block.extend(number(self.room, 5, 0x20));
                self.evict();
            }
        }
        fields.iter().for_each(|(name, value)| self.field(name, value, &mut block));
        block
    }

    fn field(&mut self, name: &str, value: &str, block: &mut Vec<u8>) {
        let whole = self.table.iter().position(|entry| entry == &(name.to_owned(), value.to_owned()));
        let named = self.table.iter().position(|entry| entry.0 == name);
        let choice = self.chooses(6);
        if let (Some(at), 1..) = (whole, choice) {
            return block.extend(number(62 + at, 7, 0x80));
        }
        let (bits, prefix) = [(4, 0), (4, 0x10), (6, 0x40)][choice.min(2)];
        match named.filter(|_| self.chooses(3) > 0) {
            Some(at) => block.extend(number(62 + at, bits, prefix)),
            None => {
                block.push(prefix);
                block.extend(self.string(name));
            }
        }
        block.extend(self.string(value));
        if prefix == 0x40 {
            self.table.push_front((name.to_owned(), value.to_owned()));
            self.evict();
        }
    }

    fn string(&mut self, string: &str) -> Vec<u8> {
        if self.chooses(2) == 0 {
            return text(string.as_bytes());
        }
        let mut coded = Vec::new();
        httlib_huffman::encode(string.as_bytes(), &mut coded).unwrap();
        [number(coded.len(), 7, 0x80), coded].concat()
    }

    fn evict(&mut self) {
        let size = |(name, value): &(String, String)| name.len() + value.len() + 32;
        while self.table.iter().map(size).sum::<usize>() > self.room {
            self.table.pop_back();
        }
    }

    fn chooses(&mut self, among: usize) -> usize {
        usize::from(*self.choices.next().unwrap()) % among
    }
}

fn number(number: usize, bits: u8, prefix: u8) -> Vec<u8> {
    let mut bytes = encode_integer(number, bits);
    bytes[0] |= prefix;
    bytes
}

#[test]
fn whatever_an_encoder_chooses() {
    let ground = Ground::new();
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let choices = prop::collection::vec(any::<u16>(), 101..1000);
    let lengths = prop::collection::vec(0..500_usize, 1..20);
    let checked = runner.run(&(choices, lengths), |(choices, lengths)| {
        let mut session = ground.open();
        let table = VecDeque::new();
        let mut encoder = Encoder { table, room: 4096, choices: choices.iter().cycle() };
        for (index, length) in (0..50).zip(lengths.iter().cycle()) {
            let (name, value) = (format!("x-{}", index % 9), "v".repeat(*length));
            let more = vec![(name.as_str(), value.as_str()), ("x-last", name.as_str())];
            let block = encoder.block(&[fields(ONE), more].concat());
            let stream = 1 + 2 * index;
            session.send(&[headers(stream, 0, &block), body(stream, &question())].concat());
            // Nothing is waited for, so that many are read at once.
            if index % 10 == 9 {
                session.ended(stream).allows();
            }
        }
        (0..50).for_each(|index| session.ended(1 + 2 * index).allows());
        Ok(())
    });
    checked.unwrap();
    ground.serves();
}
