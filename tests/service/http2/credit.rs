//! Flow control of the receiving side: the windows that the server announces, and its errors for senders that exceed
//! them.

use std::thread;

use super::ground::Ground;
use super::requests::{
    BATCH, ONE, STREAM, body, data, fields, head, headers, plain, question, questions, streamed,
};
use super::session::Session;
use super::{FLOW_CONTROL_ERROR, INITIAL_WINDOW_SIZE};
use crate::support::frames::{DATA, END_STREAM, PADDED, frame, overflowing_window_update, rst_stream};

/// A message that is never whole.
const UNFINISHED: [u8; 5] = [0, 0, 0, 0xf0, 0];

/// More than the bytes of any window.
const MUCH: usize = 4 << 20;

/// One that knows the server's settings and first credit.
fn informed(ground: &Ground, settings: &[(u16, u32)]) -> Session {
    let mut session = ground.open_with(settings);
    session.settle();
    assert!(session.credit >= 65_535 && session.initial_credit > 0);
    session
}

#[test]
fn credit_comes_back_for_batches() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
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
    let mut session = informed(&ground, &[]);
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
    let mut session = informed(&ground, &[]);
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

/// RFC 9113, 6.9.1: padding counts.
#[test]
fn credit_comes_back_for_padding() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
    session.send(&head(1, STREAM));
    let message = streamed(1000);
    assert!(message.len() * 256 / 6 > 1 << 20);
    for bytes in message.chunks(6) {
        let open = session.until("credit", |it| it.room(1) >= 256);
        assert!(open, "{:?}", session.goaways);
        session.send(&frame(DATA, PADDED, 1, &[&[249][..], bytes, &[0; 249]].concat()));
        session.charge(1, 250 + bytes.len());
    }
    session.send(&body(1, &[]));
    assert_eq!(session.ended(1).code(), "0");
    ground.serves();
}

/// Each takes half of a stream's window and is reset before its message is whole.
#[test]
fn credit_comes_back_for_calls_that_were_cancelled() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
    let half = [&UNFINISHED[..], &vec![7; 50_000]].concat();
    for stream in (0..100).map(|index| 1 + 2 * index) {
        let path = if stream % 4 == 1 { ONE } else { STREAM };
        session.send(&head(stream, path));
        session.pour(stream, &half, 0);
        session.send(&rst_stream(stream));
    }
    session.does_not_mind(201, &[]);
    ground.serves();
}

/// DATA that arrives after the answer, and DATA for a method that does not exist. The server drops both and returns
/// the credit.
#[test]
fn credit_comes_back_for_unread_bodies() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
    let paths = ["/weir.v1.RateLimitService/Nothing", "/nobody/Nothing", "/"];
    for (stream, path) in (0..90).map(|index| 1 + 2 * index).zip(paths.iter().cycle()) {
        session.send(&head(stream, path));
        session.pour(stream, &vec![7; 50_000], 0);
        session.send(&body(stream, &[]));
    }
    session.does_not_mind(1001, &[]);
    ground.serves();
}

/// Streams that the server resets while their bodies are under way (RFC 9113, 5.4.2).
#[test]
fn credit_comes_back_for_streams_that_were_reset() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
    for stream in (0..40).map(|index| 1 + 2 * index) {
        session.send(&head(stream, STREAM));
        session.send(&overflowing_window_update(stream));
        assert!(session.until("a reset", |it| it.seen(stream).reset.is_some()), "{:?}", session.goaways);
        session.pour(stream, &vec![7; 60_000], 0);
    }
    session.does_not_mind(201, &[]);
    ground.serves();
}

/// The same for requests that are refused for their headers.
#[test]
fn credit_comes_back_for_malformed_requests() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
    let block = plain(&[fields(ONE), vec![("te", "gzip")]].concat());
    for stream in (0..40).map(|index| 1 + 2 * index) {
        session.send(&headers(stream, 0, &block));
        session.pour(stream, &vec![7; 60_000], 0);
    }
    session.does_not_mind(201, &[]);
    ground.serves();
}

/// The client does not read its answers, so the server reads no more and announces no more credit.
#[test]
fn more_than_a_streams_window_is_an_error() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[(INITIAL_WINDOW_SIZE, 0)]);
    session.send(&head(1, STREAM));
    let message = data(1, &streamed(300));
    let flood = message.repeat(MUCH / message.len());
    session.ends_stream_or_connection("4 MiB on one stream", 1, &flood, &[FLOW_CONTROL_ERROR]);
    ground.serves();
}

/// Each stream keeps to its window, and all together do not.
#[test]
fn more_than_a_connections_window_is_an_error() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[(INITIAL_WINDOW_SIZE, 0)]);
    let window = session.initial_credit as usize;
    let whole = streamed(500);
    let sender = session.raw().stream().try_clone().unwrap();
    let flood = thread::spawn(move || {
        for stream in (0..200).map(|index| 1 + 2 * index) {
            let mut bytes = head(stream, STREAM);
            for _ in 0..window / whole.len() {
                bytes.extend(data(stream, &whole));
            }
            if std::io::Write::write_all(&mut &sender, &bytes).is_err() {
                return;
            }
        }
    });
    session.has_ended("200 whole windows", &[FLOW_CONTROL_ERROR]);
    flood.join().unwrap();
    ground.serves();
}

/// A question that lacks its last byte does not delay other calls.
#[test]
fn a_body_that_stalls_is_alone_in_that() {
    let ground = Ground::new();
    let mut session = informed(&ground, &[]);
    let question = question();
    session.send(&[head(1, ONE), frame(DATA, 0, 1, &question[..question.len() - 1])].concat());
    session.does_not_mind(3, &[]);
    session.send(&body(1, &question[question.len() - 1..]));
    session.ended(1).allows();
    ground.serves();
}
