//! Fairness between connections: a single call waits for at most one turn of each other connection of its worker.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use prost::Message as _;
use weir_config::{Config, ServerConfig, TransportKind};
use weir_core::algorithm::VerdictSink as _;
use weir_proto::v1::{ShouldAllowBatchRequest, ShouldAllowRequest};
use weir_store::{Answers, Decision, Store};
use weir_testing::SOON;
use weir_testing::frames::{ACK, DATA, HEADERS, PING, ping, settings_ack};

use crate::support::frames::{END_HEADERS, END_STREAM, PREFACE, frame, settings, window_update};
use crate::support::grpc::framed;
use crate::support::server::{ALLOWED, Server, ask_under, config};

/// A turn, and the largest batch.
const DECISIONS: u64 = 1000;
const CONNECTIONS: u64 = 8;

/// Allows everything, and counts. Of the honest client's decisions it knows how many came before.
#[derive(Clone, Default)]
struct Counting {
    made: Arc<AtomicU64>,
    before_honest: Arc<AtomicU64>,
}

impl Store for Counting {
    const AT_ONCE: bool = true;

    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            let before = self.made.fetch_add(1, SeqCst);
            if decision.subject.consumer == "honest" {
                self.before_honest.store(before, SeqCst);
            }
            answers.all(ALLOWED);
        }
    }
}

/// One connection by hand, with all the credit that there can be.
struct Connection {
    stream: TcpStream,
    next: u32,
}

impl Connection {
    fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.grpc).unwrap();
        stream.set_nodelay(true).unwrap();
        let most = (1 << 31) - 1;
        let opening = [PREFACE, &settings(&[(4, most)]), &window_update(0, most - 65_535)].concat();
        (&stream).write_all(&opening).unwrap();
        let mut connection = Self { stream, next: 1 };
        // The window of the connection is larger than at first once the server has said so.
        connection.stream.write_all(&settings_ack()).unwrap();
        (0..2).for_each(|_| connection.ping());
        connection
    }

    fn ping(&mut self) {
        self.stream.write_all(&ping(*b"12345678")).unwrap();
        while self.read() != (PING, ACK) {}
    }

    fn call(&mut self, path: &str, message: &[u8]) {
        let fields = [(":method", "POST"), (":scheme", "http"), (":path", path), ("te", "trailers")];
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        let block: Vec<u8> =
            fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
        let mut bytes = frame(HEADERS, END_HEADERS, self.next, &block);
        let body = framed(0, message);
        let mut pieces = body.chunks(16_384).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { END_STREAM } else { 0 };
            bytes.extend(frame(DATA, flags, self.next, piece));
        }
        self.next += 2;
        self.stream.write_all(&bytes).unwrap();
    }

    /// Reads until a stream has ended.
    fn answered(&mut self) {
        loop {
            let (kind, flags) = self.read();
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                return;
            }
        }
    }

    /// Reads a frame: its type and flags.
    fn read(&mut self) -> (u8, u8) {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        self.stream.read_exact(&mut vec![0; length]).unwrap();
        (head[3], head[4])
    }
}

/// Before turns were measured in decisions, a connection had four reads of 64 KiB: 18 batches of a thousand.
#[test]
fn a_single_call_waits_for_one_turn_of_each_other_connection() {
    let most = most_before_a_single_call(TransportKind::Fast);
    assert!(most <= CONNECTIONS * DECISIONS, "{most} decisions");
}

/// Without turns, it waited for all batches that had arrived. The turn that has begun when the call is sent comes on top.
#[test]
fn on_tonic_a_single_call_waits_for_two_turns_of_each_other_connection() {
    let most = most_before_a_single_call(TransportKind::Tonic);
    assert!(most <= 2 * CONNECTIONS * DECISIONS, "{most} decisions");
}

/// Returns how many decisions were made at most between the sending of a single call and its own, beside connections that
/// always have four batches on their way.
fn most_before_a_single_call(transport: TransportKind) -> u64 {
    let counting = Counting::default();
    let made = counting.clone();
    let server = ServerConfig { workers: 1, transport, ..config().server };
    let server = Server::with_store(Config { server, ..config() }, move || made.clone());
    let over = AtomicBool::new(false);
    let mut waits = Vec::new();
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let (server, over) = (&server, &over);
            scope.spawn(move || {
                let ask = |index| ShouldAllowRequest {
                    consumer: format!("{number}-{index}"),
                    ..ask_under("open", "x", "")
                };
                let batch =
                    ShouldAllowBatchRequest { requests: (0..DECISIONS).map(ask).collect() }.encode_to_vec();
                let mut connection = Connection::open(server);
                // So many on their way that the worker never waits for the next one.
                (0..4).for_each(|_| connection.call("/weir.v1.RateLimitService/ShouldAllowBatch", &batch));
                while !over.load(SeqCst) {
                    connection.answered();
                    connection.call("/weir.v1.RateLimitService/ShouldAllowBatch", &batch);
                }
            });
        }
        let mut honest = Connection::open(&server);
        let message = ask_under("open", "x", "honest").encode_to_vec();
        let started = Instant::now();
        while counting.made.load(SeqCst) < 20 * CONNECTIONS * DECISIONS {
            assert!(started.elapsed() < SOON, "the batches are answered");
            std::thread::yield_now();
        }
        for _ in 0..40 {
            honest.call("/weir.v1.RateLimitService/ShouldAllow", &message);
            let (sent, started) = (counting.made.load(SeqCst), Instant::now());
            honest.answered();
            let waited = counting.before_honest.load(SeqCst).saturating_sub(sent);
            waits.push((waited, started.elapsed()));
        }
        over.store(true, SeqCst);
    });
    let most = waits.iter().map(|(decisions, _)| *decisions).max().unwrap();
    let mut times: Vec<Duration> = waits.iter().map(|(_, time)| *time).collect();
    times.sort_unstable();
    println!(
        "{transport:?}: a single call beside {CONNECTIONS} x batches of {DECISIONS}: p50 {:?}, at most {most} decisions \
         before it",
        times[20]
    );
    most
}
