//! Flow control of what the server sends. That it never sends more than it may is held against every frame:
//! see [`super::session`].

use prost::Message as _;
use weir_proto::v1::ShouldAllowBatchResponse;

use super::ground::Ground;
use super::requests::{BATCH, ONE, STREAM, body, call, head, question, questions, streamed};
use super::session::Session;
use super::{FLOW_CONTROL_ERROR, INITIAL_WINDOW_SIZE, PROTOCOL_ERROR};
use crate::support::frames::{DATA, frame, settings, window_update};

const LARGEST: u32 = (1 << 31) - 1;

/// A connection that gives no credit on its own.
fn stingy(ground: &Ground, initial: u32) -> Session {
    let mut session = ground.open_with(&[(INITIAL_WINDOW_SIZE, initial)]);
    session.generous = false;
    // The server's credit is known from here on.
    session.settle();
    session
}

fn batch(stream: u32, count: usize) -> Vec<u8> {
    [head(stream, BATCH), body(stream, &questions(count))].concat()
}

fn holds(session: &mut Session, stream: u32, results: usize) {
    let answer = session.ended(stream);
    let read = ShouldAllowBatchResponse::decode(answer.message()).unwrap();
    assert_eq!(read.results.len(), results);
}

/// Waits until so many bytes of the stream have come.
fn has(session: &mut Session, stream: u32, bytes: usize) {
    let open = session.until("bytes that may come", |it| it.seen(stream).data.len() >= bytes);
    assert!(open, "{:?}", session.goaways);
}

#[test]
fn nothing_comes_without_a_window_and_all_with_one() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 0);
    session.send(&[call(1), call(3)].concat());
    session.until("both heads", |it| [1, 3].map(|id| !it.seen(id).head.is_empty()) == [true; 2]);
    session.settle();
    assert_eq!((session.seen(1).data.len(), session.seen(3).data.len()), (0, 0));
    session.grant(3, 3);
    has(&mut session, 3, 3);
    session.grant(3, 1000);
    session.ended(3).allows();
    assert!(session.seen(1).data.is_empty() && session.seen(3).pieces.len() >= 2);
    session.grant(1, 1000);
    session.ended(1).allows();
    ground.serves();
}

#[test]
fn windows_of_one_byte() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 1);
    session.send(&[call(1), batch(3, 10)].concat());
    for stream in [1, 3] {
        let mut come = 0;
        while !session.seen(stream).ended {
            let more = |it: &mut Session| it.seen(stream).ended || it.seen(stream).data.len() > come;
            assert!(session.until("one more byte", more));
            come = session.seen(stream).data.len();
            session.grant(stream, 1);
        }
        assert!(session.seen(stream).pieces.iter().all(|piece| *piece <= 1));
    }
    session.seen(1).allows();
    holds(&mut session, 3, 10);
    ground.serves();
}

#[test]
fn settings_open_windows_too() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 0);
    session.send(&[batch(1, 50), batch(3, 50)].concat());
    session.grant(1, 7);
    has(&mut session, 1, 7);
    for window in [1, 10, 100, 101, 60_000] {
        session.set(&[(INITIAL_WINDOW_SIZE, window)]);
        let come = |it: &mut Session| {
            it.is_set() && [1, 3].iter().all(|id| it.window_of(*id) == 0 || it.seen(*id).ended)
        };
        assert!(session.until("all that fits", come));
    }
    for stream in [1, 3] {
        holds(&mut session, stream, 50);
    }
    ground.serves();
}

#[test]
fn a_window_below_zero_must_be_filled_first() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 200);
    session.send(&batch(1, 300));
    has(&mut session, 1, 200);
    session.set(&[(INITIAL_WINDOW_SIZE, 50)]);
    session.until("settings", |it| it.is_set());
    assert_eq!(session.window_of(1), -150);
    session.grant(1, 150);
    session.settle();
    session.settle();
    assert_eq!(session.seen(1).data.len(), 200);
    session.grant(1, 9);
    has(&mut session, 1, 209);
    // Lowered and raised again while nothing may be sent.
    for window in [0, 40, 0, 50, 51] {
        session.set(&[(INITIAL_WINDOW_SIZE, window)]);
    }
    has(&mut session, 1, 210);
    session.set(&[(INITIAL_WINDOW_SIZE, 60_000)]);
    holds(&mut session, 1, 300);
    // And new streams have what was said last.
    session.send(&batch(3, 300));
    holds(&mut session, 3, 300);
    ground.serves();
}

/// The client does not read its answers of half a megabyte. Meanwhile the server still sends HEADERS, and answers
/// PINGs and calls of other connections.
#[test]
fn a_connections_window_is_for_all_its_streams() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 1 << 24);
    let streams: Vec<u32> = (0..16).map(|index| 1 + 2 * index).collect();
    streams.iter().for_each(|stream| session.send(&batch(*stream, 1000)));
    let total = |it: &mut Session| streams.iter().map(|id| it.seen(*id).data.len()).sum::<usize>();
    assert!(session.until("a whole window", |it| total(it) == 65_535));
    session.send(&call(101));
    assert!(session.until("a head", |it| !it.seen(101).head.is_empty()));
    session.settle();
    assert!(!session.seen(101).ended);
    ground.serves();
    session.grant(0, 1);
    assert!(session.until("one more byte", |it| total(it) + it.seen(101).data.len() == 65_536));
    session.generous = true;
    session.grant(0, 1 << 20);
    streams.iter().for_each(|stream| holds(&mut session, *stream, 1000));
    session.ended(101).allows();
    ground.serves();
}

/// What a stream that was reset still had to be sent takes nothing from the others' window.
#[test]
fn a_reset_stream_gives_back_the_window_it_did_not_use() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 1 << 24);
    for round in 0..4 {
        let stream = 1 + 4 * round;
        session.send(&batch(stream, 1000));
        session.send(&batch(stream + 2, 1000));
        let come = |it: &mut Session| it.seen(stream).data.len() + it.seen(stream + 2).data.len();
        assert!(session.until("something", |it| come(it) > 0));
        session.send(&crate::support::frames::rst_stream(stream));
        session.send(&crate::support::frames::rst_stream(stream + 2));
        session.settle();
        session.grant(0, 65_535 - u32::try_from(session.window()).unwrap());
    }
    session.send(&call(101));
    session.ended(101).allows();
    ground.serves();
}

/// While answers cannot go out, a stream's questions wait; then all are answered.
#[test]
fn a_stream_that_is_not_read_goes_on_later() {
    let ground = Ground::new();
    let mut session = stingy(&ground, 100);
    session.send(&head(1, STREAM));
    for _ in 0..100 {
        session.send(&frame(DATA, 0, 1, &streamed(10)));
    }
    session.send(&body(1, &[]));
    has(&mut session, 1, 100);
    ground.serves();
    session.set(&[(INITIAL_WINDOW_SIZE, LARGEST)]);
    session.generous = true;
    let answer = session.ended(1);
    assert_eq!(answer.code(), "0");
    ground.serves();
}

#[test]
fn windows_may_be_as_large_as_can_be() {
    let ground = Ground::new();
    let mut session = stingy(&ground, LARGEST);
    session.grant(0, LARGEST - 65_535);
    for stream in [1, 3] {
        session.send(&call(stream));
        session.ended(stream).allows();
    }
    session.set(&[(INITIAL_WINDOW_SIZE, 10)]);
    session.send(&head(5, ONE));
    session.grant(5, LARGEST - 10);
    session.send(&body(5, &question()));
    session.ended(5).allows();
    ground.serves();
}

#[test]
fn windows_that_overflow() {
    let ground = Ground::new();
    let begun = head(1, ONE);
    let stream = [begun.clone(), window_update(1, LARGEST)].concat();
    let codes = [FLOW_CONTROL_ERROR];
    ground.open().ends_stream_or_connection("a stream's window", 1, &stream, &codes);
    ground.serves();
    let twice = [begun.clone(), window_update(1, LARGEST - 65_535), window_update(1, 1)].concat();
    ground.open().ends_stream_or_connection("a stream's window by one", 1, &twice, &codes);
    ground.serves();
    ground.open().ends_connection("the connection's", &window_update(0, LARGEST), &codes);
    ground.serves();
    let by_one = [window_update(0, LARGEST - 65_535), window_update(0, 1)].concat();
    ground.open().ends_connection("the connection's by one", &by_one, &codes);
    ground.serves();
    let raised = [begun, window_update(1, 1000), settings(&[(INITIAL_WINDOW_SIZE, LARGEST)])].concat();
    let mut session = ground.open();
    session.expects_acknowledgement();
    session.ends_connection("a stream's by settings", &raised, &codes);
    ground.serves();
}

#[test]
fn increments_of_zero() {
    let ground = Ground::new();
    ground.open().ends_connection("the connection's", &window_update(0, 0), &[PROTOCOL_ERROR]);
    let stream = [head(1, ONE), window_update(1, 0)].concat();
    ground.open().ends_stream_or_connection("a stream's", 1, &stream, &[PROTOCOL_ERROR]);
    ground.serves();
}
