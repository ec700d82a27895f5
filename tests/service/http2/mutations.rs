//! A valid session's bytes, damaged: whatever comes, the server lives on and keeps nothing.

use std::cell::Cell;
use std::net::Shutdown;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use super::INITIAL_WINDOW_SIZE;
use super::ground::Ground;
use super::requests::{
    BATCH, ONE, STREAM, body, fields, head, headers, literal, plain, question, questions, streamed,
};
use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, ObservedEnd, PADDED, PREFACE, PRIORITY,
    WITH_PRIORITY, frame, ping, rst_stream, settings, settings_ack, window_update,
};

#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Drop(Index, u8),
    Insert(Index, Vec<u8>),
    /// Of whole frames.
    Swap(Index, Index),
    Repeat(Index, u8),
    Lose(Index),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let index = any::<Index>;
    let bytes = prop::collection::vec(any::<u8>(), 1..20);
    let damage = prop_oneof![
        (index(), 1..=255_u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (index(), 1..30_u8).prop_map(|(at, count)| Damage::Drop(at, count)),
        (index(), bytes).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (index(), index()).prop_map(|(one, other)| Damage::Swap(one, other)),
        (index(), 1..5_u8).prop_map(|(at, times)| Damage::Repeat(at, times)),
        index().prop_map(Damage::Lose),
    ];
    prop::collection::vec(damage, 1..5)
}

/// Of every kind of frame that a client sends.
fn valid() -> Vec<Vec<u8>> {
    let mut encoder = fluke_hpack::Encoder::new();
    let mut block = |more: (&str, &str)| {
        let fields = [fields(ONE), vec![more]].concat();
        encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    };
    let (indexed, again) = (block(("x-a", "1")), block(("x-a", "1")));
    let plain = plain(&fields(ONE));
    let question = question();
    let json = literal(b"content-type", b"application/json");
    let json = [plain.clone(), json].concat();
    let padded = [&[3][..], &question, &[0; 3]].concat();
    vec![
        settings(&[(1, 100), (2, 0), (INITIAL_WINDOW_SIZE, 100), (0x42, 7)]),
        settings_ack(),
        headers(1, 0, &indexed),
        frame(DATA, PADDED, 1, &padded),
        body(1, &[]),
        frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 9]),
        frame(HEADERS, WITH_PRIORITY, 3, &[&[0, 0, 0, 1, 9][..], &plain[..20]].concat()),
        frame(CONTINUATION, 0, 3, &plain[20..40]),
        frame(CONTINUATION, END_HEADERS, 3, &plain[40..]),
        body(3, &question),
        ping(*b"mutation"),
        headers(5, 0, &again),
        body(5, &question),
        window_update(0, 1000),
        head(7, BATCH),
        body(7, &questions(20)),
        window_update(7, 900),
        settings(&[(1, 0), (INITIAL_WINDOW_SIZE, 50)]),
        head(9, STREAM),
        frame(DATA, 0, 9, &streamed(3)),
        window_update(9, 500),
        frame(DATA, 0, 9, &streamed(2)),
        rst_stream(9),
        head(11, STREAM),
        body(11, &streamed(2)),
        settings(&[(1, 4096), (INITIAL_WINDOW_SIZE, 65_535)]),
        head(13, ONE),
        body(13, &question),
        frame(0x42, 1, 0, b"unknown"),
        // A watch, which never ends; a body with trailers; what is not gRPC's; and the client's farewell.
        head(15, "/grpc.health.v1.Health/Watch"),
        body(15, &[0; 5]),
        head(17, ONE),
        frame(DATA, 0, 17, &question),
        headers(17, END_STREAM, &literal(b"x-checksum", b"7")),
        headers(19, END_STREAM, &json),
        head(21, BATCH),
        frame(DATA, 0, 21, &questions(900)[..16_000]),
        frame(GOAWAY, 0, 0, &[0; 8]),
        head(23, ONE),
        body(23, &question),
    ]
}

fn damaged(damages: &[Damage]) -> Vec<u8> {
    let mut frames = valid();
    let count = frames.len();
    for damage in damages {
        match damage {
            Damage::Swap(one, other) => frames.swap(one.index(count), other.index(count)),
            Damage::Repeat(at, times) => {
                let frame = &mut frames[at.index(count)];
                *frame = frame.repeat(usize::from(*times) + 1);
            }
            Damage::Lose(at) => frames[at.index(count)].clear(),
            _ => {}
        }
    }
    let mut bytes = frames.concat();
    for damage in damages {
        match damage {
            Damage::Flip(at, bits) => {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
            Damage::Drop(at, count) => {
                let at = at.index(bytes.len());
                bytes.drain(at..bytes.len().min(at + usize::from(*count)));
            }
            Damage::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            _ => {}
        }
    }
    bytes
}

#[test]
fn whatever_comes_others_are_served_and_nothing_is_kept() {
    let ground = Ground::new();
    let cases = Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&(damages(), prop::bool::weighted(0.95)), |(damages, with_preface)| {
        let mut raw = ground.raw();
        // The preface is damaged elsewhere: nearly every case would end with it.
        let preface = if with_preface { PREFACE } else { &PREFACE[..23] };
        raw.try_send(preface);
        raw.try_send(&damaged(&damages));
        let _ = raw.stream().shutdown(Shutdown::Write);
        prop_assert!(matches!(raw.end(), ObservedEnd::Closed(_)), "it ends with its peer");
        cases.set(cases.get() + 1);
        if cases.get() % 50 == 0 {
            ground.serves();
        }
        Ok(())
    });
    checked.unwrap();
    ground.serves();
    ground.holds(0);
}
