//! What a server must put up with.

use super::ground::Ground;
use super::requests::{ONE, body, call, fields, head, headers, plain, question};
use super::{
    ENABLE_PUSH, HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
};
use crate::support::frames::{
    ACK, DATA, END_STREAM, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, ping, settings,
};

const PRIORITIES: [u8; 5] = [0, 0, 0, 9, 200];

#[test]
fn frames_of_unknown_types() {
    let ground = Ground::new();
    let mut session = ground.open();
    for (index, kind) in [10, 11, 12, 0x10, 0x42, 0xff].into_iter().enumerate() {
        let stream = 1 + 2 * index as u32;
        let unknown = |stream| frame(kind, 0xff, stream, b"whatever it is");
        session.send(&[unknown(0), unknown(stream), frame(kind, 0, stream, &[])].concat());
        session.send(&[head(stream, ONE), unknown(stream), unknown(0), body(stream, &question())].concat());
        session.ended(stream).allows();
        session.send(&frame(kind, 0, stream, &vec![7; 16_384]));
    }
    session.does_not_mind(101, &[]);
    ground.serves();
}

#[test]
fn settings_that_are_unknown_repeated_or_extreme() {
    let ground = Ground::new();
    let mut session = ground.open();
    let rows: [&[(u16, u32)]; 10] = [
        &[(0, 1), (7, 2), (8, 0), (0x4242, u32::MAX), (u16::MAX, 0)],
        &[],
        &[(MAX_CONCURRENT_STREAMS, 0)],
        &[(MAX_CONCURRENT_STREAMS, u32::MAX)],
        &[(ENABLE_PUSH, 0)],
        &[(ENABLE_PUSH, 1)],
        &[(MAX_FRAME_SIZE, 16_384), (MAX_FRAME_SIZE, (1 << 24) - 1)],
        &[(INITIAL_WINDOW_SIZE, 0), (INITIAL_WINDOW_SIZE, 70_000), (INITIAL_WINDOW_SIZE, 65_535)],
        &[(HEADER_TABLE_SIZE, u32::MAX)],
        &[(MAX_HEADER_LIST_SIZE, u32::MAX), (MAX_HEADER_LIST_SIZE, 65_536)],
    ];
    for (index, row) in rows.into_iter().enumerate() {
        session.set(row);
        session.does_not_mind(1 + 2 * index as u32, &[]);
        assert!(session.is_set(), "{row:?}");
    }
    // As many as fit, in one frame.
    session.set(&vec![(0x4242, 7); 16_384 / 6]);
    session.does_not_mind(101, &[]);
    assert!(session.is_set());
    ground.serves();
}

#[test]
fn priority_anywhere() {
    let ground = Ground::new();
    let mut session = ground.open();
    let priority = |stream| frame(PRIORITY, 0, stream, &PRIORITIES);
    session.send(&[priority(1), priority(3), priority(99), priority(2)].concat());
    session.send(&[head(1, ONE), priority(1), body(1, &question()), priority(1)].concat());
    session.ended(1).allows();
    session.does_not_mind(3, &[priority(1), priority(3), priority(5)].concat());
    session.does_not_mind(5, &[]);
    ground.serves();
}

#[test]
fn flags_and_bits_that_mean_nothing() {
    let ground = Ground::new();
    let mut session = ground.open();
    let reserved = |stream: u32| stream | 1 << 31;
    let block = plain(&fields(ONE));
    session.send(&headers(reserved(1), 0xd2 & !0x20, &block)[..]);
    session.send(&frame(DATA, END_STREAM | 0xf6 & !8, reserved(1), &question()));
    session.ended(1).allows();
    session.send(&frame(SETTINGS, 0xfe, reserved(0), &[]));
    session.expects_acknowledgement();
    session.send(&frame(WINDOW_UPDATE, 0xff, reserved(0), &reserved(1).to_be_bytes()));
    session.send(&frame(PING, 0xfe, reserved(0), b"reserved"));
    session.until("an answer to the PING", |it| !it.pongs.is_empty());
    session.does_not_mind(3, &frame(RST_STREAM, 0xff, reserved(1), &8_u32.to_be_bytes()));
    ground.serves();
}

/// WINDOW_UPDATE and RST_STREAM frames may arrive for a stream that has just closed (RFC 9113, 5.1).
#[test]
fn late_words_about_a_stream_that_has_ended() {
    let ground = Ground::new();
    let mut session = ground.open();
    session.send(&call(1));
    session.ended(1).allows();
    let late = [frame(WINDOW_UPDATE, 0, 1, &9_u32.to_be_bytes()), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])];
    session.does_not_mind(3, &late.concat());
    ground.serves();
}

#[test]
fn a_ping_is_answered_with_its_bytes() {
    let ground = Ground::new();
    let mut session = ground.open();
    let payloads = [*b"\0\0\0\0\0\0\0\0", *b"\xff\xff\xff\xff\xff\xff\xff\xff", *b"12345678"];
    session.send(&payloads.map(ping).concat());
    session.until("three answers", |it| it.pongs.len() == 3);
    assert_eq!(session.pongs, payloads);
    // An answer to a question that was never asked is none.
    session.does_not_mind(1, &frame(PING, ACK, 0, b"an echo!"));
    assert_eq!(session.pongs.len(), 3);
    ground.serves();
}

/// RFC 9110, 5.5: bytes above 0x7f are opaque, and what stands between words is part of the value.
#[test]
fn values_that_look_odd() {
    let ground = Ground::new();
    let mut session = ground.open();
    let odd: [(&[u8], &[u8]); 6] = [
        (b"x-empty", b""),
        (b"x-tab", b"a\tb  c"),
        (b"x-high", b"\x80\xff"),
        (b"x-name!#$%&'*+-.^_`|~09", b"1"),
        (b"x-twice", b"1"),
        (b"x-twice", b"2"),
    ];
    let more: Vec<u8> = odd.iter().flat_map(|(name, value)| super::requests::literal(name, value)).collect();
    session.send(&headers(1, 0, &[plain(&fields(ONE)), more].concat()));
    session.send(&body(1, &question()));
    session.ended(1).allows();
    ground.serves();
}

#[test]
fn cookies_in_pieces_and_an_authority_that_is_missing() {
    let ground = Ground::new();
    let mut session = ground.open();
    let fields: Vec<_> = fields(ONE).into_iter().filter(|(name, _)| *name != ":authority").collect();
    let more = [("host", "weir"), ("cookie", "a=1"), ("cookie", "b=2")];
    session.send(&headers(1, 0, &plain(&[&fields[..], &more].concat())));
    session.send(&body(1, &question()));
    session.ended(1).allows();
    ground.serves();
}

#[test]
fn settings_between_a_calls_frames() {
    let ground = Ground::new();
    let mut session = ground.open();
    session.send(&head(1, ONE));
    session.set(&[(INITIAL_WINDOW_SIZE, 1 << 20)]);
    session.send(&[body(1, &question()), settings(&[])].concat());
    session.expects_acknowledgement();
    session.ended(1).allows();
    session.until("both acknowledgements", |it| it.is_set());
    ground.serves();
}
