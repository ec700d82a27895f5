//! One connection's HTTP/2, without its socket: bytes in, calls out; answers in, bytes out.
//!
//! RFC 9113 as a server of gRPC needs it. Frames are read where they lie; nothing is kept for a stream but
//! what its call still needs, and everything that a peer can make grow has a bound: streams, header bytes,
//! windows, resets, and what waits to be written ([`Session::is_full`]: then nothing further is read).

mod credit;
mod preface;
mod receive;
mod send;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::blocks::Blocks;
use super::body::{Ledger, Received};
use super::code::{Broken, Code};
use super::head::Head;
use super::stream::{Stream, Streams};
use super::work::Pouring;
use crate::config::ServerLimits;
use crate::http2::frames::{self, DEFAULT_WINDOW, flag, kind};
use crate::http2::hpack::Decoder;

/// What a caller may send ahead on one stream, and on all of a connection together. Eight streams whose
/// answers nobody reads leave room for the other calls of their connection.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes that may wait to be written before a peer who does not read them is read from no more.
const FULL: usize = 128 << 10;

/// Bytes of answers that may wait for the peer's windows before its calls are begun no more.
const WAITING: usize = 4 << 20;

/// Streams that a connection keeps room for when it has none.
const KEPT_STREAMS: usize = 512;

/// Streams that we ended before their callers did: what was on its way for them is no fault.
const FORGIVEN: usize = 1024;

/// What our PINGs say.
const KEEPALIVE: [u8; 8] = *b"weir:up?";
const FAREWELL: [u8; 8] = *b"weir:bye";

/// The state of one connection.
pub(in crate::server) struct Session {
    bounds: Bounds,
    begun: Begun,
    decoder: Decoder,
    blocks: Blocks,
    streams: Streams,
    /// The highest stream that the caller has opened.
    last: u32,
    /// Headers that go on in the next frame.
    block: Option<Block>,
    /// What the caller may still send, and what has been read since it was told so.
    left: i64,
    owed: usize,
    /// What we may still send, in all and on a new stream; and the most that any stream has had beyond that.
    room: i64,
    first_room: i64,
    most_room: i64,
    /// Streams whose calls have not begun.
    arrived: Vec<u32>,
    /// Streams whose calls are to be given up.
    dropped: Vec<u32>,
    /// Answers that may go on.
    asked: Vec<Pouring>,
    /// Streams that have something to send, and no room; and how many bytes wait there.
    blocked: VecDeque<u32>,
    waiting: usize,
    ledger: Ledger,
    out: Vec<u8>,
    /// Resets of calls that had not begun, since any last began; and resets that were ours.
    early_resets: usize,
    local_resets: usize,
    forgiven: VecDeque<u32>,
    leaving: Leaving,
    /// The peer has said that it leaves.
    is_left: bool,
    /// A PING of ours has been answered.
    ponged: bool,
}

/// What a peer may do.
struct Bounds {
    streams: u32,
    header_bytes: u32,
    early_resets: usize,
    local_resets: usize,
}

/// What the peer has said so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Nothing,
    Preface,
    Settings,
}

/// How far the connection is on its way to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// The peer has been told; what it sent before it knew is answered.
    Announced,
    /// No stream after the last one is taken.
    Closing,
}

struct Block {
    stream: u32,
    is_last: bool,
    bytes: Vec<u8>,
    /// Of its frames.
    received: usize,
}

impl Session {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        let bounds = Bounds {
            streams: limits.max_streams,
            header_bytes: limits.max_header_bytes,
            early_resets: limits.max_pending_resets,
            local_resets: limits.max_local_resets,
        };
        Self {
            bounds,
            begun: Begun::Nothing,
            decoder: Decoder::default(),
            blocks: Blocks::default(),
            streams: Streams::default(),
            last: 0,
            block: None,
            left: CONNECTION_WINDOW.into(),
            owed: 0,
            room: DEFAULT_WINDOW,
            first_room: DEFAULT_WINDOW,
            most_room: 0,
            arrived: Vec::new(),
            dropped: Vec::new(),
            asked: Vec::new(),
            blocked: VecDeque::new(),
            waiting: 0,
            ledger: Ledger::default(),
            out: Vec::new(),
            early_resets: 0,
            local_resets: 0,
            forgiven: VecDeque::new(),
            leaving: Leaving::No,
            is_left: false,
            ponged: false,
        }
    }

    /// Whether the peer has begun to speak HTTP/2.
    pub(super) fn has_begun(&self) -> bool {
        self.begun == Begun::Settings
    }

    /// Takes the frames that are whole, and says how many bytes they were.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let mut taken = 0;
        if self.begun == Begun::Nothing {
            taken = self.preface(bytes)?;
            if taken == 0 {
                return Ok(0);
            }
        }
        let too_large = |why| Broken::new(Code::FrameSize, why);
        while let Some((frame, length)) = frames::first(&bytes[taken..]).map_err(too_large)? {
            self.take(&frame)?;
            taken += length;
        }
        Ok(taken)
    }

    /// The calls that have arrived and not been reset meanwhile, in their order. Those of a peer that does not
    /// take its answers wait until it does: a small call may have a large answer.
    pub(super) fn calls(&mut self, mut begin: impl FnMut(&mut Self, u32, Head, Received)) {
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut looked_at = 0;
        for &id in &arrived {
            if self.is_full() || self.waiting >= WAITING {
                break;
            }
            looked_at += 1;
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            let Some((head, body, read)) = stream.begin(id, &self.ledger) else { continue };
            self.has_read(read);
            begin(self, id, head, body);
        }
        arrived.drain(..looked_at);
        self.arrived = arrived;
        if self.arrived.is_empty() {
            self.early_resets = 0;
        }
    }

    /// Streams whose calls are to be given up: they were reset.
    pub(super) fn take_dropped(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.dropped)
    }

    /// Asks whether the peer, who has been silent, is there; [`Session::take_pong`] tells of its answer. Nothing
    /// is kept of what it needed room for.
    pub(in crate::server) fn ping(&mut self) {
        self.ponged = false;
        if self.streams.is_empty() {
            self.streams = Streams::default();
            (self.arrived, self.dropped, self.asked, self.blocked) = Default::default();
        }
        frames::write(&mut self.out, kind::PING, 0, 0, &KEEPALIVE);
    }

    /// Whether a PING of ours has been answered since it was last asked.
    pub(in crate::server) fn take_pong(&mut self) -> bool {
        std::mem::take(&mut self.ponged)
    }

    /// Lets the calls in flight finish, and those that the peer sends before it knows.
    pub(super) fn leave(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced;
            self.goaway(u32::MAX >> 1, Code::NoError, "");
            frames::write(&mut self.out, kind::PING, 0, 0, &FAREWELL);
        }
    }

    /// Sends the final GOAWAY although the farewell PING has no answer: streams that the peer opens from now on are
    /// ignored (RFC 9113, 6.8).
    pub(super) fn finish_leaving(&mut self) {
        if self.leaving == Leaving::Announced {
            self.leaving = Leaving::Closing;
            self.goaway(self.last, Code::NoError, "");
        }
    }

    /// The last word on a connection that is over, for a fault or without one. Who does not speak HTTP/2 would
    /// not understand it.
    pub(super) fn end(&mut self, fault: Option<Broken>) {
        if self.begun == Begun::Nothing {
            return;
        }
        let (code, why) = fault.map_or((Code::NoError, ""), |broken| (broken.code, broken.why));
        self.goaway(self.last, code, why);
    }

    /// Whether no call is left, and none will come.
    pub(super) fn is_over(&self) -> bool {
        (self.is_left || self.leaving == Leaving::Closing) && self.streams.is_empty()
    }

    /// Whether so much waits to be written that nothing further is to be read or asked for.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= FULL
    }

    /// What is to be written; whoever has written some of it takes it off.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn goaway(&mut self, last: u32, code: Code, why: &str) {
        let payload = [&last.to_be_bytes(), &(code as u32).to_be_bytes(), why.as_bytes()].concat();
        frames::write(&mut self.out, kind::GOAWAY, 0, 0, &payload);
    }

    /// Ends a stream for a fault of its caller's.
    fn reset(&mut self, stream: u32, code: Code) -> Result<(), Broken> {
        self.local_resets += 1;
        if self.local_resets > self.bounds.local_resets {
            return Err(Broken::new(Code::EnhanceYourCalm, "too many of its streams were at fault"));
        }
        self.send_reset(stream, code);
        self.drop_stream(stream);
        Ok(())
    }

    fn send_reset(&mut self, stream: u32, code: Code) {
        frames::write(&mut self.out, kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
        if self.forgiven.len() == FORGIVEN {
            self.forgiven.pop_front();
        }
        self.forgiven.push_back(stream);
    }

    /// Forgets a stream before its call has ended.
    fn drop_stream(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            if stream.has_begun() {
                self.dropped.push(id);
            }
            self.let_go(stream);
        }
    }

    /// Nobody reads any more what it was sent, or sends what waits there.
    fn let_go(&mut self, stream: Stream) {
        if let Some(tail) = &stream.tail {
            self.waiting -= tail.data.len();
        }
        self.has_read(stream.end());
    }
}

/// Answers to SETTINGS and PING carry this.
const ACK: u8 = flag::ACK;
