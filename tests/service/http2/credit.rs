//! Flow control of the receiving side: the windows of batches and streams come back.

use super::ground::Ground;
use super::requests::{BATCH, STREAM, body, head, questions, streamed};
use super::session::Session;
use crate::support::frames::END_STREAM;

/// One that knows the server's settings and first credit.
fn informed(ground: &Ground) -> Session {
    let mut session = ground.open();
    session.settle();
    assert!(session.credit >= 65_535 && session.initial_credit > 0);
    session
}

#[test]
fn credit_comes_back_for_batches() {
    let ground = Ground::new();
    let mut session = informed(&ground);
    let batch = questions(1000);
    assert!(batch.len() > 32_000 && batch.len() < 64 << 10, "{}", batch.len());
    for stream in (0..60).map(|index| 1 + 2 * index) {
        session.send(&head(stream, BATCH));
        session.pour(stream, &batch, END_STREAM);
        session.ended(stream).message();
    }
    ground.serves();
}

#[test]
fn credit_comes_back_for_streams() {
    let ground = Ground::new();
    let mut session = informed(&ground);
    session.send(&head(1, STREAM));
    let (message, window) = (streamed(500), session.initial_credit as usize);
    let mut sent = 0;
    while sent < window * 8 {
        session.pour(1, &message, 0);
        sent += message.len();
    }
    session.send(&body(1, &[]));
    assert_eq!(session.ended(1).code(), "0");
    ground.serves();
}

/// Two streams send their bodies in turn. Each gets its own window updates.
#[test]
fn credit_comes_back_for_streams_side_by_side() {
    let ground = Ground::new();
    let mut session = informed(&ground);
    for stream in [1, 3, 5] {
        session.send(&head(stream, STREAM));
    }
    let message = streamed(300);
    for _ in 0..60 {
        for stream in [1, 3, 5] {
            session.pour(stream, &message, 0);
        }
    }
    for stream in [5, 3, 1] {
        session.send(&body(stream, &[]));
        assert_eq!(session.ended(stream).code(), "0");
    }
    ground.serves();
}
