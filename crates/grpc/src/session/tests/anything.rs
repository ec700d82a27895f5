//! A random peer and random services. Invariants: no send window is exceeded, the output is valid, all credit is
//! returned, and ended calls leave nothing behind.

use std::collections::HashMap;
use std::collections::VecDeque;

use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame as Piece;
use proptest::prelude::*;

use super::*;
use crate::budget::{Account, BufferBudget};
use crate::reading_time::ReadingTime;

#[derive(Clone, Debug)]
enum RandomStep {
    Headers { stream: u32, flags: u8, length: Option<u8>, cut: bool },
    Data { stream: u32, bytes: u16, flags: u8 },
    Reset(u32),
    Window { stream: u32, more: u32 },
    Settings(u16, u32),
    Ping(bool, bool),
    Other(u8, u8, u32, Vec<u8>),
    Begin,
    Answer { call: u8, how: u8, bytes: u32 },
    Pour { how: u8, bytes: u16 },
    Read(u8, bool),
    Leave,
    Take,
}

fn step() -> impl Strategy<Value = RandomStep> {
    let stream = || (0..8_u32).prop_map(|number| 1 + 2 * number);
    let any_stream = || prop_oneof![9 => (0..8_u32).prop_map(|number| 1 + 2 * number), 1 => 0..20_u32];
    let more = prop_oneof![Just(0), Just(1), 1..100_u32, 1..70_000_u32, Just((1 << 31) - 1)];
    let room = prop_oneof![Just(0), 0..100_u32, 0..70_000_u32, Just((1 << 31) - 1)];
    let window = prop_oneof![3 => Just(0), 7 => stream()];
    prop_oneof![
        8 => (stream(), 0..2_u8, prop::option::weighted(0.1, any::<u8>()), prop::bool::weighted(0.05))
            .prop_map(|(stream, flags, length, cut)| RandomStep::Headers { stream, flags, length, cut }),
        8 => (stream(), 0..9000_u16, prop_oneof![4 => Just(0), 2 => Just(1), 1 => Just(8), 1 => Just(9)])
            .prop_map(|(stream, bytes, flags)| RandomStep::Data { stream, bytes, flags }),
        2 => stream().prop_map(RandomStep::Reset),
        6 => (window, more).prop_map(|(stream, more)| RandomStep::Window { stream, more }),
        3 => (prop_oneof![1 => Just(1_u16), 5 => Just(4)], room).prop_map(|(name, room)| RandomStep::Settings(name, room)),
        1 => any::<(bool, bool)>().prop_map(|(ack, farewell)| RandomStep::Ping(ack, farewell)),
        1 => (0..12_u8, any::<u8>(), any_stream(), prop::collection::vec(any::<u8>(), 0..12))
            .prop_map(|(kind, flags, stream, payload)| RandomStep::Other(kind, flags, stream, payload)),
        6 => Just(RandomStep::Begin),
        6 => (any::<u8>(), any::<u8>(), prop_oneof![0..300_u32, 0..200_000_u32])
            .prop_map(|(call, how, bytes)| RandomStep::Answer { call, how, bytes }),
        4 => (any::<u8>(), 0..40_000_u16).prop_map(|(how, bytes)| RandomStep::Pour { how, bytes }),
        4 => any::<(u8, bool)>().prop_map(|(body, drop)| RandomStep::Read(body, drop)),
        1 => prop::bool::weighted(0.05).prop_map(|shut_down| if shut_down { RandomStep::Leave } else { RandomStep::Begin }),
        3 => Just(RandomStep::Take),
    ]
}

/// The two sides of a session.
struct RandomWorld {
    session: Session,
    /// Calls in flight, and their request bodies.
    calls: Vec<u32>,
    bodies: Vec<RequestBody>,
    response: VecDeque<StreamingResponse>,
    account: Account,
    /// An account with most of the budget, so that it is full sometimes.
    other: Account,
    reading: ReadingTime,
    peer: RandomPeer,
    broken: bool,
}

/// The state of the peer.
struct RandomPeer {
    window: i64,
    first: i64,
    /// Credit given minus bytes used per stream, and true once the server has ended it.
    streams: HashMap<u32, (i64, bool)>,
    decoder: fluke_hpack::Decoder<'static>,
    block: Vec<u8>,
}

impl RandomPeer {
    /// Reads the output and checks it.
    fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((frame, length)) = frames::first(rest).unwrap() {
            rest = &rest[length..];
            let stream = self.streams.entry(frame.stream).or_default();
            match frame.kind {
                kind::DATA => {
                    let bytes = frame.payload.len() as i64;
                    (self.window, stream.0) = (self.window - bytes, stream.0 - bytes);
                    assert!(!stream.1, "DATA behind the end of {}", frame.stream);
                    assert!(bytes == 0 || (self.window >= 0 && self.first + stream.0 >= 0), "no window");
                    stream.1 = frame.has(flag::END_STREAM);
                }
                kind::HEADERS | kind::CONTINUATION => {
                    if frame.kind == kind::HEADERS {
                        assert!(!stream.1, "HEADERS behind the end of {}", frame.stream);
                        stream.1 = frame.has(flag::END_STREAM);
                    }
                    self.block.extend_from_slice(frame.payload);
                    if frame.has(flag::END_HEADERS) {
                        assert!(!self.decoder.decode(&std::mem::take(&mut self.block)).unwrap().is_empty());
                    }
                }
                kind::RST_STREAM => stream.1 = true,
                kind::WINDOW_UPDATE => assert!(frame.number(0).unwrap() > 0),
                kind::SETTINGS | kind::PING | kind::GOAWAY => assert_eq!(frame.stream, 0),
                other => panic!("a frame of kind {other}"),
            }
        }
        assert!(rest.is_empty());
    }
}

impl RandomWorld {
    fn new() -> Self {
        let first = DEFAULT_WINDOW;
        let decoder = fluke_hpack::Decoder::new();
        let peer = RandomPeer { window: first, first, streams: HashMap::new(), decoder, block: Vec::new() };
        let (calls, bodies, response) = Default::default();
        let worker = BufferBudget::new(300_000, 1).worker();
        let (account, other, reading) = (worker.open(), worker.open(), ReadingTime::default());
        Self { session: begun(&[]), calls, bodies, response, account, other, reading, peer, broken: false }
    }

    fn receive(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.broken |= receive(&mut self.session, kind, flags, stream, payload).is_err();
    }

    fn take_out(&mut self) {
        self.peer.read(&std::mem::take(self.session.output()));
    }

    /// Does what the connection's task does in one turn.
    fn turn(&mut self) {
        let Self { session, calls, bodies, response, account, .. } = self;
        crate::turn::enter(0);
        session.send_queued();
        session.begin_calls(|_, stream, _, body| {
            calls.push(stream);
            bodies.push(body);
        });
        let dropped = session.take_cancelled();
        calls.retain(|it| !dropped.contains(it));
        response.retain(|it| !dropped.contains(&it.stream));
        response.extend(session.take_resumable());
        session.return_credit();
        session.begin_turn();
        // Now and then another connection holds nearly all of the budget, and demands some of this one.
        let other = if session.last_stream_id % 3 == 0 { 250_000 } else { 0 };
        self.other.set_exactly(other);
        session.settle(account, &self.reading, other / 10).unwrap();
        assert_eq!(account.held(), session.held(), "all that is held is counted");
    }

    fn step(&mut self, step: RandomStep) {
        match step {
            RandomStep::Headers { stream, flags, length, cut } => {
                let length = length.map(|length| length.to_string());
                let length = length.iter().map(|length| (&b"content-length"[..], length.as_bytes()));
                // On a known stream HEADERS are trailers.
                let fields = if stream > self.session.last_stream_id { ASK } else { &[] };
                let fields = fields.iter().copied().chain(length);
                let block = fluke_hpack::Encoder::new().encode(fields);
                let (first, rest) = block.split_at(if cut { block.len() / 2 } else { block.len() });
                let end = if cut { 0 } else { flag::END_HEADERS };
                self.receive(kind::HEADERS, flags | end, stream, first);
                if cut {
                    self.receive(kind::CONTINUATION, flag::END_HEADERS, stream, rest);
                }
            }
            RandomStep::Data { stream, bytes, flags } => {
                self.receive(kind::DATA, flags, stream, &body(bytes));
            }
            RandomStep::Reset(stream) => {
                self.take_out();
                self.receive(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            }
            RandomStep::Window { stream, more } => {
                let given = if stream == 0 { &mut self.peer.window } else { self.peer.given(stream) };
                *given += i64::from(more);
                self.receive(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
            }
            RandomStep::Settings(name, value) => {
                // Earlier output is checked against the earlier setting.
                self.take_out();
                if name == setting::INITIAL_WINDOW_SIZE {
                    self.peer.first = value.into();
                }
                let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
                self.receive(kind::SETTINGS, 0, 0, &payload);
            }
            RandomStep::Ping(ack, farewell) => {
                self.receive(
                    kind::PING,
                    u8::from(ack),
                    0,
                    if farewell { &SHUTDOWN_PING } else { &KEEPALIVE_PING },
                );
            }
            RandomStep::Other(kind, flags, stream, payload) => {
                // Frames that would change send windows are not modelled.
                if ![kind::WINDOW_UPDATE, kind::SETTINGS].contains(&kind) {
                    self.receive(kind, flags, stream, &payload);
                }
            }
            RandomStep::Begin => self.turn(),
            RandomStep::Answer { call, how, bytes } => self.answer(call, how, bytes),
            RandomStep::Pour { how, bytes } => self.pour(how, bytes),
            RandomStep::Read(body, drop) => self.read(body, drop),
            RandomStep::Leave => self.session.shut_down(),
            RandomStep::Take => self.take_out(),
        }
    }

    fn answer(&mut self, call: u8, how: u8, bytes: u32) {
        if self.calls.is_empty() {
            return;
        }
        let stream = self.calls.swap_remove(usize::from(call) % self.calls.len());
        match how % 8 {
            0 => self.session.failed(stream),
            1 => self.session.answer(stream, Err(Status::not_found("a".repeat(bytes as usize / 8)))),
            2 | 3 => {
                let never = |never: std::convert::Infallible| match never {};
                let body = Box::pin(http_body_util::Full::new(Bytes::from_static(b"more")).map_err(never));
                self.session.answer(stream, Ok(Reply::Messages(body)));
            }
            _ => self.session.answer(stream, message(bytes as usize)),
        }
    }

    fn pour(&mut self, how: u8, bytes: u16) {
        let Some(response) = self.response.pop_front() else { return };
        let piece = match how % 8 {
            0 => None,
            1 => Some(Piece::trailers(HeaderMap::from_iter([(
                HeaderName::from_static("grpc-status"),
                HeaderValue::from_static("0"),
            )]))),
            _ => Some(Piece::data(Bytes::from(vec![1; bytes.into()]))),
        };
        self.session.continue_response(response, piece);
    }

    fn read(&mut self, body: u8, drop: bool) {
        if self.bodies.is_empty() {
            return;
        }
        let at = usize::from(body) % self.bodies.len();
        let read = Pin::new(&mut self.bodies[at]).poll_frame(&mut Context::from_waker(Waker::noop()));
        if drop || matches!(read, Poll::Ready(None | Some(Err(_)))) {
            self.bodies.swap_remove(at);
        }
    }

    /// Ends all calls and sends all output.
    fn ends(mut self) {
        self.bodies.clear();
        // Enough turns for all output: eight responses of less than 200,000 bytes.
        for _ in 0..20 {
            self.turn();
            while let Some(call) = self.calls.pop() {
                self.session.answer(call, message(100));
            }
            while !self.response.is_empty() {
                self.pour(0, 0);
            }
            self.bodies.clear();
            self.take_out();
            // As much credit as is valid.
            let more = (1 << 20) - self.session.send_window.clamp(0, 1 << 20);
            (self.peer.window, self.session.send_window) =
                (self.peer.window + more, self.session.send_window + more);
            let most = self.session.streams.values().map(|stream| stream.send_window_delta).fold(0, i64::max);
            self.peer.first = (1 << 31) - 1 - most;
            self.session.initial_send_window = self.peer.first;
        }
        self.session.return_credit();
        assert!(self.session.streams.is_empty(), "{} streams are left", self.session.streams.len());
        assert_eq!((self.session.queued_bytes, self.session.resumable.len()), (0, 0));
        // Reset streams leave the queue once there is a send window.
        self.session.send_window = self.session.send_window.max(1);
        self.session.send_queued();
        assert!(self.session.blocked.is_empty());
        self.session.end_lingering();
        self.session.settle(&mut self.account, &self.reading, 0).unwrap();
        assert_eq!((self.session.held_by_streams, self.account.held()), (0, self.session.output.len()));
        let session = &self.session;
        let credit = session.recv_window + session.pending_credit as i64 - session.unused_credit as i64;
        assert_eq!(credit, i64::from(CONNECTION_WINDOW), "all credit comes back");
    }
}

/// Creates a piece of a body: zeros, which are empty messages; the beginning of a longer message; or garbage.
fn body(bytes: u16) -> Vec<u8> {
    let mut body = vec![0; bytes.into()];
    match bytes % 3 {
        0 => body,
        1 if bytes > 5 => {
            body[1..5].copy_from_slice(&(u32::from(bytes) * 3).to_be_bytes());
            body
        }
        _ => vec![bytes as u8; bytes.into()],
    }
}

impl RandomPeer {
    fn given(&mut self, stream: u32) -> &mut i64 {
        &mut self.streams.entry(stream).or_default().0
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_both_sides_do(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = RandomWorld::new();
        for step in steps {
            world.step(step);
            if world.broken {
                break;
            }
        }
        if !world.broken {
            world.take_out();
            world.ends();
        }
    }
}
