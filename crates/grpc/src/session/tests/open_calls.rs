//! Bounds of open calls: their number, the time to their first message, and their memory.

use std::time::Duration;

use super::*;
use crate::budget::{Account, BufferBudget};
use crate::reading_time::ReadingTime;
use crate::service::CallKind;

fn head(session: &mut Session, stream: u32, path: &str) {
    let fields = [(&b":method"[..], &b"POST"[..]), (b":scheme", b"http"), (b":path", path.as_bytes())];
    let block = fluke_hpack::Encoder::new().encode(fields.iter().copied());
    receive(session, kind::HEADERS, flag::END_HEADERS, stream, &block).unwrap();
}

/// Begins all calls. Refused ones are answered.
fn begin(session: &mut Session, account: &mut Account) -> Vec<RequestBody> {
    let mut bodies = Vec::new();
    crate::turn::enter(0);
    session.begin_turn();
    session.begin_calls(|session, stream, _, body| {
        let is_hot = session.streams[&stream].kind == CallKind::Hot;
        let admitted = if is_hot { Ok(()) } else { session.admit(account, stream) };
        match admitted {
            Ok(()) => bodies.push(body),
            Err(status) => session.answer(stream, Err(status)),
        }
    });
    bodies
}

/// Returns the header block of each response, undecoded, by stream.
fn answers(session: &mut Session) -> Vec<(u32, String)> {
    let bytes = std::mem::take(session.output());
    let (mut rest, mut answers) = (&bytes[..], Vec::new());
    while let Some((frame, length)) = frames::first(rest).unwrap() {
        if frame.kind == kind::HEADERS {
            answers.push((frame.stream, String::from_utf8_lossy(frame.payload).into_owned()));
        }
        rest = &rest[length..];
    }
    answers
}

fn account(budget: usize) -> Account {
    BufferBudget::new(budget, 1).worker().open()
}

#[test]
fn side_streams_have_a_bound_on_each_connection() {
    let limits = ConnectionLimits { max_side_streams: 2, ..ConnectionLimits::default() };
    let mut session = begun_with(&limits, usize::MAX, &[]);
    for stream in [1, 3, 5] {
        head(&mut session, stream, WATCH);
    }
    head(&mut session, 7, STREAM);
    let refused = answers(&mut session);
    assert_eq!(refused.len(), 1);
    assert!(refused[0].0 == 5 && refused[0].1.contains("max_side_streams"), "{refused:?}");
    // A stream that ends frees its place.
    receive(&mut session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap();
    head(&mut session, 9, WATCH);
    head(&mut session, 11, WATCH);
    let refused = answers(&mut session);
    assert_eq!(refused.iter().map(|it| it.0).collect::<Vec<_>>(), [11]);
}

#[test]
fn streams_of_all_kinds_have_a_bound_in_the_process() {
    let mut session = begun_with(&ConnectionLimits::default(), 2, &[]);
    head(&mut session, 1, STREAM);
    head(&mut session, 3, WATCH);
    head(&mut session, 5, STREAM);
    head(&mut session, 7, "/weir.v1.RateLimitService/ShouldAllow");
    head(&mut session, 9, "/weir.v1.QueueService/Take");
    let refused = answers(&mut session);
    assert_eq!(refused.len(), 1);
    assert!(refused[0].0 == 5 && refused[0].1.contains("max_open_streams"), "{refused:?}");
    let streams = session.open_calls.streams();
    assert_eq!(streams.count(), 2);
    drop(session);
    assert_eq!(streams.count(), 0);
}

#[test]
fn a_call_that_says_nothing_ends() {
    let timeout = Duration::from_secs(3);
    let limits = ConnectionLimits { first_message_timeout: timeout, ..ConnectionLimits::default() };
    let (mut session, mut account) = (begun_with(&limits, usize::MAX, &[]), account(64 << 20));
    let (start, mut reading) = (weir_time::clock::monotonic(), ReadingTime::default());
    session.now = Some(start);
    reading.resume(start);
    for (stream, path) in [(1, STREAM), (3, WATCH), (5, "/weir.v1.QueueService/Take"), (7, STREAM)] {
        head(&mut session, stream, path);
    }
    // One call has a message, which is empty.
    receive(&mut session, kind::DATA, 0, 1, &[0; 5]).unwrap();
    let bodies = begin(&mut session, &mut account);
    session.now = Some(start);
    session.settle(&mut account, &reading, 0).unwrap();
    // The message of another begins in time. From then on the deadline of a message applies.
    receive(&mut session, kind::DATA, 0, 7, &[0]).unwrap();
    session.settle(&mut account, &reading, 0).unwrap();
    assert_eq!(session.message_due(), Some(timeout));
    session.end_late_messages(timeout - Duration::from_micros(1));
    assert_eq!(answers(&mut session), []);
    session.end_late_messages(timeout);
    let ended = answers(&mut session);
    assert_eq!(ended.iter().map(|it| it.0).collect::<Vec<_>>(), [3, 5]);
    assert!(ended.iter().all(|it| it.1.contains("first_message_timeout")), "{ended:?}");
    assert_eq!(session.message_due(), Some(MESSAGE_TIMEOUT));
    drop(bodies);
}

#[test]
fn a_call_counts_from_its_headers_on_and_a_stream_by_what_it_takes() {
    let (mut session, mut account) = (begun(&[]), account(64 << 20));
    head(&mut session, 1, WATCH);
    session.settle(&mut account, &ReadingTime::default(), 0).unwrap();
    assert_eq!(account.held(), 1 << 10);
    let bodies = begin(&mut session, &mut account);
    session.settle(&mut account, &ReadingTime::default(), 0).unwrap();
    assert_eq!(account.held(), 4 << 10);
    receive(&mut session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap();
    session.settle(&mut account, &ReadingTime::default(), 0).unwrap();
    assert_eq!(account.held(), 0);
    drop(bodies);
}

/// Workers take whole chunks, so the budget may be exceeded by one chunk.
const CHUNK: usize = 16 << 10;

#[test]
fn streams_that_do_not_fit_are_refused() {
    let (mut session, mut account) = (begun(&[]), account(64 << 10));
    let mut open = Vec::new();
    for stream in (0..30).map(|index| 1 + 2 * index) {
        head(&mut session, stream, WATCH);
        open.extend(begin(&mut session, &mut account));
    }
    let refused = answers(&mut session);
    assert_eq!(open.len() + refused.len(), 30);
    assert!(open.len() >= 15 && open.len() * (4 << 10) <= (64 << 10) + CHUNK, "{}", open.len());
    assert!(refused.iter().all(|it| it.1.contains("max_buffered_bytes")), "{refused:?}");
}

#[test]
fn calls_without_a_message_end_the_newest_first_when_the_budget_is_full() {
    let (mut session, mut account) = (begun(&[]), account(64 << 10));
    let mut bodies = Vec::new();
    let mut ended = Vec::new();
    for stream in (0..40).map(|index| 1 + 2 * index) {
        head(&mut session, stream, "/weir.v1.RateLimitService/ShouldAllow");
        bodies.extend(begin(&mut session, &mut account));
        session.settle(&mut account, &ReadingTime::default(), 0).unwrap();
        ended.extend(answers(&mut session).into_iter().map(|it| it.0));
    }
    // Each time the newest call is ended.
    assert!(ended.len() >= 12 && ended.is_sorted(), "{ended:?}");
    session.settle(&mut account, &ReadingTime::default(), 0).unwrap();
    assert!(account.held() <= (64 << 10) + CHUNK, "{}", account.held());
}

/// Otherwise idle streams of one connection would keep all others from sending long messages.
#[test]
fn streams_end_when_another_connection_needs_the_space() {
    let (mut session, mut account) = (begun(&[]), account(64 << 20));
    for stream in [1, 3, 5] {
        head(&mut session, stream, STREAM);
        receive(&mut session, kind::DATA, 0, stream, &[0; 5]).unwrap();
    }
    let bodies = begin(&mut session, &mut account);
    session.return_credit();
    session.settle(&mut account, &ReadingTime::default(), 3 << 10).unwrap();
    let ended: Vec<u32> = answers(&mut session).into_iter().map(|it| it.0).collect();
    assert_eq!(ended, [5, 3]);
    assert_eq!(session.take_cancelled(), [5, 3]);
    drop(bodies);
}

/// A service may read a body in a task of its own, as reflection does. Such a task once waited forever for the rest
/// of its body after the connection had ended, and held all its memory.
#[test]
fn bodies_end_with_their_connection() {
    let (mut session, mut account) = (begun(&[]), account(64 << 20));
    head(&mut session, 1, WATCH);
    let mut bodies = begin(&mut session, &mut account);
    drop(session);
    let context = &mut Context::from_waker(Waker::noop());
    let polled = Pin::new(&mut bodies[0]).poll_frame(context);
    assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "{polled:?}");
}
