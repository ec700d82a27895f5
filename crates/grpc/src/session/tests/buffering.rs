//! The bytes that a session holds for messages, and the credit that it gives for them.

use super::*;
use crate::budget::{Account, BufferBudget};
use crate::framing::PREFIX;
use crate::reading_time::ReadingTime;
use crate::service::CALL_BYTES;

struct BufferingWorld {
    session: Session,
    account: Account,
    reading: ReadingTime,
    bodies: Vec<RequestBody>,
}

impl BufferingWorld {
    fn with(budget: usize) -> Self {
        let account = BufferBudget::new(budget, 1).worker().open();
        Self { session: begun(&[]), account, reading: ReadingTime::default(), bodies: Vec::new() }
    }

    fn open(&mut self, stream: u32) {
        let block = fluke_hpack::Encoder::new().encode(ASK.iter().copied());
        receive(&mut self.session, kind::HEADERS, flag::END_HEADERS, stream, &block).unwrap();
    }

    fn data(&mut self, stream: u32, bytes: &[u8], flags: u8) {
        let mut pieces = bytes.chunks(LARGEST_PAYLOAD).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { flags } else { 0 };
            receive(&mut self.session, kind::DATA, flags, stream, piece).unwrap();
        }
    }

    /// Begins calls, reads all bodies, and ends the turn.
    fn turn(&mut self) {
        let bodies = &mut self.bodies;
        crate::turn::enter(0);
        self.session.begin_turn();
        self.session.begin_calls(|_, _, _, body| {
            bodies.push(body);
        });
        for body in bodies {
            while let Poll::Ready(Some(Ok(_))) =
                Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop()))
            {}
        }
        self.session.return_credit();
        self.session.settle(&mut self.account, &self.reading, 0).unwrap();
    }

    /// Sums the increments of WINDOW_UPDATE: of the connection, and of streams.
    fn credit(&mut self) -> (u32, u32) {
        let bytes = std::mem::take(self.session.output());
        let (mut rest, mut credit) = (&bytes[..], (0, 0));
        while let Some((frame, length)) = frames::first(rest).unwrap() {
            if frame.kind == kind::WINDOW_UPDATE {
                let increment = frame.number(0).unwrap();
                *(if frame.stream == 0 { &mut credit.0 } else { &mut credit.1 }) += increment;
            }
            rest = &rest[length..];
        }
        credit
    }

    /// Returns the bytes that the account holds with the output written, without those of the open calls
    /// themselves.
    fn held(&mut self) -> usize {
        self.session.output().clear();
        self.session.settle(&mut self.account, &self.reading, 0).unwrap();
        self.account.held() - self.session.streams.len() * CALL_BYTES
    }

    /// Returns the grpc-status of each response, by stream.
    fn statuses(&mut self) -> Vec<(u32, String)> {
        let bytes = std::mem::take(self.session.output());
        let (mut rest, mut statuses) = (&bytes[..], Vec::new());
        while let Some((frame, length)) = frames::first(rest).unwrap() {
            if frame.kind == kind::HEADERS {
                let text = String::from_utf8_lossy(frame.payload).into_owned();
                if let Some(at) = text.find("grpc-status") {
                    statuses.push((
                        frame.stream,
                        text[at + 12..].chars().take_while(char::is_ascii_digit).collect(),
                    ));
                }
            }
            rest = &rest[length..];
        }
        statuses
    }
}

fn announce(length: usize, sent: usize) -> Vec<u8> {
    [&[0], &(length as u32).to_be_bytes()[..], &vec![7; sent]].concat()
}

/// Bytes of incomplete messages once returned their credit as soon as they were read. So eight connections could
/// make the server hold half a gigabyte.
#[test]
fn an_incomplete_message_returns_credit_only_with_a_reservation() {
    let mut world = BufferingWorld::with(64 << 20);
    world.open(1);
    // The prefix is incomplete: nothing is announced yet.
    world.data(1, &announce(400_000, 0)[..4], 0);
    world.turn();
    assert_eq!((world.credit(), world.held()), ((0, 0), 0));
    world.data(1, &announce(400_000, 60_000)[4..], 0);
    world.turn();
    let all = (400_000 + PREFIX) as u32;
    assert_eq!((world.credit(), world.held()), ((all, all), 400_000 + PREFIX));
    // The rest arrives without further credit, and counts until the call is answered.
    for _ in 0..6 {
        world.data(1, &[7; 50_000], 0);
        world.turn();
        assert_eq!((world.credit(), world.held()), ((0, 0), 400_000 + PREFIX));
    }
    world.data(1, &[7; 40_000], flag::END_STREAM);
    world.turn();
    assert_eq!((world.credit(), world.held()), ((0, 0), 400_000 + PREFIX));
    world.session.answer(1, message(1));
    world.turn();
    world.session.output().clear();
    world.turn();
    assert_eq!(world.account.held(), 0);
    let session = &world.session;
    assert_eq!(session.recv_window + session.pending_credit as i64, i64::from(CONNECTION_WINDOW));
}

#[test]
fn a_message_that_arrives_whole_and_is_answered_is_never_counted() {
    let budget = BufferBudget::new(64 << 20, 1);
    let mut world = BufferingWorld::with(1);
    world.account = budget.worker().open();
    for stream in (0..100).map(|index| 1 + 2 * index) {
        world.open(stream);
        world.data(stream, &announce(1000, 1000), flag::END_STREAM);
        crate::turn::enter(0);
        world.session.begin_calls(|session, id, _, _| {
            session.answer(id, message(100));
        });
        world.session.output().clear();
        world.session.settle(&mut world.account, &world.reading, 0).unwrap();
    }
    assert_eq!(budget.taken(), 0);
}

#[test]
fn the_oldest_incomplete_message_ends_when_the_budget_is_full() {
    let mut world = BufferingWorld::with(1 << 20);
    for stream in [1, 3, 5] {
        world.open(stream);
        world.data(stream, &announce(400_000, 100), 0);
        world.turn();
    }
    // Two messages have space; the third takes that of the first.
    assert_eq!(world.statuses(), [(1, "8".to_owned())]);
    assert_eq!(world.session.take_cancelled(), [1]);
    assert_eq!(world.held(), 2 * (400_000 + PREFIX));
    // The message never fits, and the connection can free nothing, so its own call ends.
    let mut world = BufferingWorld::with(100_000);
    world.open(1);
    world.data(1, &announce(400_000, 100), 0);
    world.turn();
    assert_eq!(world.statuses(), [(1, "8".to_owned())]);
    assert_eq!(world.held(), 0);
}

#[test]
fn unsent_answers_are_given_up_when_nothing_else_can_be() {
    let mut world = BufferingWorld::with(1 << 20);
    for (stream, bytes) in [(1, 300_000), (3, 500_000)] {
        world.open(stream);
        world.data(stream, &announce(1, 1), flag::END_STREAM);
        world.turn();
        world.session.answer(stream, message(bytes));
        world.turn();
        world.session.output().clear();
    }
    world.turn();
    world.open(5);
    world.data(5, &announce(700_000, 100), 0);
    world.turn();
    let resets: Vec<_> =
        sent_frames(&mut world.session).into_iter().filter(|it| it.0 == kind::RST_STREAM).collect();
    assert_eq!(resets, [(kind::RST_STREAM, 3, 4)], "the stream with the most unsent bytes");
    assert!(world.session.streams.contains_key(&1) && world.session.streams.contains_key(&5));
}

#[test]
fn credit_that_was_given_in_advance_is_not_given_again() {
    let mut world = BufferingWorld::with(64 << 20);
    for stream in (0..20).map(|index| 1 + 2 * index) {
        world.open(stream);
        world.data(stream, &announce(1 << 20, 100), 0);
        world.turn();
        receive(&mut world.session, kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes()).unwrap();
        world.turn();
        let session = &world.session;
        let window = session.recv_window + session.pending_credit as i64 - session.unused_credit as i64;
        assert_eq!(window, i64::from(CONNECTION_WINDOW));
        assert!(
            session.recv_window <= i64::from(CONNECTION_WINDOW) + (1 << 20) + 5,
            "{}",
            session.recv_window
        );
    }
    assert_eq!(world.account.held(), world.session.output.len());
}

#[test]
fn a_message_that_does_not_arrive_in_time_ends_its_call() {
    let mut world = BufferingWorld::with(64 << 20);
    let start = weir_time::clock::monotonic();
    world.session.now = Some(start);
    world.reading.resume(start);
    world.open(1);
    world.data(1, b"\0", 0);
    world.session.settle(&mut world.account, &world.reading, 0).unwrap();
    world.open(3);
    world.data(3, &announce(1000, 10), 0);
    world.session.settle(&mut world.account, &world.reading, 0).unwrap();
    let due = world.session.message_due().unwrap();
    assert_eq!(due.as_secs(), 10);
    world.session.end_late_messages(due - std::time::Duration::from_micros(1));
    assert_eq!(world.statuses(), []);
    // One message is complete in time.
    world.data(3, &[7; 990], flag::END_STREAM);
    world.session.end_late_messages(due);
    assert_eq!(world.statuses(), [(1, "4".to_owned())]);
    assert_eq!(world.session.message_due(), None);
}

/// An incomplete header block once did not count in the budget.
#[test]
fn an_incomplete_header_block_is_counted_and_ends_its_connection_when_there_is_no_space() {
    const BYTES: usize = 15 * LARGEST_PAYLOAD;
    let begin = |budget| {
        let mut world = BufferingWorld::with(budget);
        world.open(1);
        receive(&mut world.session, kind::HEADERS, 0, 3, &[0; LARGEST_PAYLOAD]).unwrap();
        for _ in 1..15 {
            receive(&mut world.session, kind::CONTINUATION, 0, 3, &[0; LARGEST_PAYLOAD]).unwrap();
        }
        world
    };
    let mut world = begin(64 << 20);
    world.turn();
    assert!((BYTES - LARGEST_PAYLOAD..2 * BYTES).contains(&world.held()), "{}", world.held());
    // Another connection demands space, and this one can free nothing else.
    let BufferingWorld { session, account, reading, .. } = &mut world;
    let ended = session.settle(account, reading, BYTES).map_err(|error| error.code);
    assert_eq!(ended, Err(ErrorCode::EnhanceYourCalm));
    let BufferingWorld { session, account, reading, .. } = &mut begin(100_000);
    let ended = session.settle(account, reading, 0).map_err(|error| error.reason);
    assert_eq!(ended, Err("the buffer budget is full: a header block"));
    // The end of the connection frees all of it.
    let mut world = begin(64 << 20);
    world.turn();
    receive(&mut world.session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap_err();
    let _ = receive(&mut world.session, kind::CONTINUATION, flag::END_HEADERS, 3, &[]);
    assert_eq!(world.session.held_by_block(), 0);
}
