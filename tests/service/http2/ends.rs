//! The ends of streams and connections, from either side. Nothing is left of them.

use std::net::Shutdown;

use prost::Message as _;
use weir_config::ServerLimits;
use weir_proto::v1::ShouldAllowStreamResponse;

use super::NO_ERROR;
use super::ground::Ground;
use super::requests::{ONE, STREAM, body, call, head, question, streamed};
use super::session::Session;
use crate::support::frames::{DATA, PREFACE, frame, number, rst_stream, settings};

#[test]
fn a_waiting_call_is_reset() {
    let (ground, store) = Ground::gated(ServerLimits::default());
    let mut session = ground.open();
    session.send(&[call(1), call(3), call(5)].concat());
    store.waits_for(3);
    session.send(&rst_stream(3));
    store.waits_for(2);
    store.open();
    session.allow(&[1, 5]);
    session.does_not_mind(7, &[]);
    assert_eq!(session.seen(3).head, [], "nothing is said to who has gone");
    ground.serves();
}

#[test]
fn the_connection_ends_while_calls_wait() {
    let (ground, store) = Ground::gated(ServerLimits::default());
    let mut session = ground.open();
    session.send(&(0..50).flat_map(|index| call(1 + 2 * index)).collect::<Vec<_>>());
    store.waits_for(50);
    ground.holds(1);
    drop(session);
    ground.holds(0);
    store.waits_for(0);
    store.open();
    ground.serves();
}

/// In the middle of a frame, of a header block, of a message, of a preface.
#[test]
fn connections_that_end_in_the_middle() {
    let ground = Ground::new();
    let whole =
        [PREFACE, &settings(&[]), &call(1), &head(3, STREAM), &frame(DATA, 0, 3, &streamed(3))].concat();
    for length in (0..whole.len()).step_by(3) {
        let raw = ground.raw();
        raw.send(&whole[..length]);
        if length % 2 == 0 {
            raw.stream().shutdown(Shutdown::Both).unwrap();
        }
    }
    ground.serves();
    ground.holds(0);
}

/// RFC 9113, 6.8: calls in flight finish, later ones are ignored, and then the connection closes.
#[test]
fn the_server_stops() {
    let (mut ground, store) = Ground::gated(ServerLimits::default());
    let mut session = ground.open();
    session.send(&[call(1), call(3), head(5, ONE)].concat());
    store.waits_for(2);
    ground.server.stop();
    assert!(session.until("the last stream's number", |it| it.goaways.iter().any(|(last, _)| *last == 5)));
    session.send(&call(7));
    session.send(&body(5, &question()));
    session.settle();
    store.waits_for(3);
    store.open();
    session.allow(&[1, 3, 5]);
    assert!(session.until("the connection's end", |it| it.closed));
    assert!(session.seen(7).head.is_empty(), "{:?}", session.seen(7));
    assert!(session.goaways.iter().all(|(last, code)| *last >= 5 && *code == NO_ERROR));
    assert!(session.goaways.is_sorted_by_key(|(last, _)| std::cmp::Reverse(*last)));
    assert_eq!(ground.server.ended(), Ok(()));
}

/// Connections that the kernel has accepted, or that no worker has looked at yet, may carry calls.
#[test]
fn calls_of_connections_not_yet_read_are_answered() {
    let mut ground = Ground::new();
    let mut sessions: Vec<Session> = (0..200).map(|_| ground.open()).collect();
    sessions.iter_mut().for_each(|session| session.send(&call(1)));
    ground.server.stop();
    for session in &mut sessions {
        session.allow(&[1]);
        session.has_ended("a connection of a server that stops", &[NO_ERROR]);
    }
    assert_eq!(ground.server.ended(), Ok(()));
}

/// The server does not wait for the answer to its last PING until the end of the drain. That would take 10 s and
/// reset the call.
#[test]
fn a_farewell_ping_without_an_answer_does_not_hold_up_the_shutdown() {
    let (mut ground, store) = Ground::gated(ServerLimits::default());
    let mut session = ground.open();
    session.answers_pings = false;
    session.send(&call(1));
    store.waits_for(1);
    ground.server.stop();
    assert!(session.until("the final GOAWAY", |it| it.goaways.contains(&(1, NO_ERROR))));
    session.send(&call(3));
    session.settle();
    store.open();
    session.allow(&[1]);
    assert!(session.until("the connection's end", |it| it.closed));
    assert!(session.seen(3).head.is_empty(), "{:?}", session.seen(3));
    assert_eq!(ground.server.ended(), Ok(()));
}

/// A thousand questions of a stream wait for the store at a time. Those behind them have been read as well.
#[test]
fn every_question_of_a_stream_that_was_read_is_answered() {
    let (mut ground, store) = Ground::gated(ServerLimits::default());
    let mut session = ground.open();
    session.send(&head(1, STREAM));
    for count in [1000, 100, 200] {
        session.pour(1, &streamed(count), 0);
    }
    store.waits_for(1000);
    session.settle();
    ground.server.stop();
    assert!(session.until("a GOAWAY", |it| !it.goaways.is_empty()));
    session.settle();
    store.open();
    let answer = session.ended(1);
    assert_eq!(answer.code(), "14", "UNAVAILABLE");
    assert_eq!(answers(&answer.data), 1300);
    assert!(session.until("the connection's end", |it| it.closed));
    assert_eq!(ground.server.ended(), Ok(()));
}

/// Counts the answers in these messages of a stream.
fn answers(mut data: &[u8]) -> usize {
    let mut count = 0;
    while let Some((prefix, rest)) = data.split_at_checked(5) {
        let (message, rest) = rest.split_at(number(&prefix[1..]) as usize);
        count += ShouldAllowStreamResponse::decode(message).unwrap().results.len();
        data = rest;
    }
    count
}
