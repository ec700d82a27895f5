//! One HTTP/2 connection without its socket: bytes in, calls out; answers in, bytes out.
//!
//! RFC 9113 as a server of gRPC needs it. Frames are parsed where they lie in the read buffer. A stream keeps
//! only what its call still needs. Everything that a client can make grow has a bound: streams, header bytes,
//! windows, resets, and output ([`Session::output_is_full`]: then nothing further is read).

mod buffering;
mod flow_control;
mod header_block;
mod lingering;
mod open_calls;
mod preface;
mod receive;
mod recent_streams;
mod send;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::body::{ReadLedger, RequestBody};
use crate::decaying_count::DecayingCount;
use crate::error_code::{ConnectionError, ErrorCode};
use crate::events::{ConnectionEvent, ConnectionObserver};
use crate::frames::{self, DEFAULT_WINDOW, flag, kind};
use crate::hpack::Decoder;
use crate::in_flight::StreamingResponse;
use crate::limits::ConnectionLimits;
use crate::open_streams::OpenStreams;
use crate::request_headers::RequestHead;
use crate::response_headers::ResponseHeaders;
use crate::service::Methods;
use crate::stream::{CallStream, Streams};
use crate::turn;

pub use self::buffering::MESSAGE_TIMEOUT;
use self::buffering::PartialMessage;
use self::header_block::HeaderBlock;
use self::lingering::Lingering;
pub use self::open_calls::FEW_CALLS;
use self::open_calls::OpenCalls;
use self::recent_streams::RecentStreams;

/// Initial receive windows per stream and per connection (RFC 9113, 6.9). Eight stalled streams fill the
/// connection window.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes of output above which nothing further is read or answered: the peer does not read fast enough.
const MAX_OUTPUT: usize = 128 << 10;

/// Bytes of answers that may wait for the peer's windows before no further call of it begins.
const MAX_QUEUED_BYTES: usize = 4 << 20;

/// Reset streams that are remembered at least. A client may have opened more than it may, before it has our settings.
const MIN_RESET_STREAMS: usize = 1024;

/// Counted resets are forgotten within this time, evenly.
const RESETS_PERIOD: Duration = Duration::from_secs(10);

/// Calls that a client may reset within that time, for each stream that may be open: proxies reset as many calls as
/// they have time-outs when a store hangs.
const CLIENT_RESETS: usize = 256;

/// Opaque data of our PINGs (RFC 9113, 6.7).
const KEEPALIVE_PING: [u8; 8] = *b"weir:up?";
const SHUTDOWN_PING: [u8; 8] = *b"weir:bye";

/// The state of one connection.
pub(crate) struct Session {
    limits: ConnectionLimits,
    methods: Methods,
    observer: Arc<dyn ConnectionObserver>,
    handshake: ClientPreface,
    decoder: Decoder,
    response_headers: ResponseHeaders,
    streams: Streams,
    /// The highest stream that the client has opened.
    last_stream_id: u32,
    /// A header block whose CONTINUATION frames have not all arrived.
    header_block: Option<HeaderBlock>,
    /// The connection's receive window, and the bytes that have been consumed since the last WINDOW_UPDATE.
    recv_window: i64,
    pending_credit: usize,
    /// Credit that was given in advance for messages that ended early.
    unused_credit: usize,
    /// The connection's send window, and that of a new stream.
    send_window: i64,
    initial_send_window: i64,
    /// The largest [`CallStream::send_window_delta`] of any stream, or more.
    largest_send_window_delta: i64,
    /// Streams whose calls have not begun, in the order of their arrival.
    new_calls: Vec<u32>,
    /// Streams whose calls are to be cancelled.
    cancelled: Vec<u32>,
    /// Streaming responses that may be polled for more.
    resumable: Vec<StreamingResponse>,
    /// Streams with data that waits for a send window, and how many bytes those are.
    blocked: VecDeque<u32>,
    queued_bytes: usize,
    ledger: ReadLedger,
    output: Vec<u8>,
    open_calls: OpenCalls,
    /// What all streams, requests that are read on, and the incomplete header block hold of the buffer budget.
    held_by_streams: usize,
    /// Streams whose incomplete messages may need a reservation.
    unreserved: Vec<u32>,
    /// Messages that were incomplete at the end of a turn, the oldest first.
    partial_messages: VecDeque<PartialMessage>,
    /// The time of this turn, once somebody has asked for it.
    now: Option<Instant>,
    /// Calls in `new_calls` that the client has reset.
    pending_resets: usize,
    /// Calls that the client has reset.
    client_resets: DecayingCount,
    /// Streams that were reset for a fault of the client.
    local_resets: DecayingCount,
    /// Streams that we have reset: frames that were in flight for them are ignored (RFC 9113, 5.1).
    reset_streams: RecentStreams,
    /// Streams that the client has reset: a late frame for them is a stream error, but no fault that counts. Clients
    /// (grpc-java on netty) send DATA that was queued before the RST_STREAM.
    cancelled_streams: RecentStreams,
    /// Requests that were answered before their end.
    lingering: Lingering,
    shutdown: GracefulShutdown,
    goaway_received: bool,
    /// Whether the last keepalive PING was acknowledged.
    ping_acked: bool,
}

/// What the client has still to send before its first request (RFC 9113, 3.4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientPreface {
    Preface,
    Settings,
    Done,
}

/// Graceful shutdown (RFC 9113, 6.8).
#[derive(Clone, Copy, PartialEq, Eq)]
enum GracefulShutdown {
    No,
    /// GOAWAY with the highest possible stream was sent: what the client sends before it knows is answered.
    Announced,
    /// GOAWAY with the last stream was sent: later streams are ignored.
    Final,
}

impl Session {
    pub(crate) fn new(
        limits: &ConnectionLimits,
        methods: Methods,
        observer: Arc<dyn ConnectionObserver>,
        open_streams: OpenStreams,
    ) -> Self {
        let resets = |limit| DecayingCount::new(limit, RESETS_PERIOD);
        // As many streams may be in flight when their client learns of a reset.
        let recent = || RecentStreams::new((limits.max_streams as usize).max(MIN_RESET_STREAMS));
        Self {
            limits: limits.clone(),
            methods,
            observer,
            handshake: ClientPreface::Preface,
            decoder: Decoder::default(),
            response_headers: ResponseHeaders::default(),
            streams: Streams::default(),
            last_stream_id: 0,
            header_block: None,
            recv_window: CONNECTION_WINDOW.into(),
            pending_credit: 0,
            unused_credit: 0,
            send_window: DEFAULT_WINDOW,
            initial_send_window: DEFAULT_WINDOW,
            largest_send_window_delta: 0,
            new_calls: Vec::new(),
            cancelled: Vec::new(),
            resumable: Vec::new(),
            blocked: VecDeque::new(),
            queued_bytes: 0,
            ledger: ReadLedger::default(),
            output: Vec::new(),
            open_calls: OpenCalls::new(open_streams),
            held_by_streams: 0,
            unreserved: Vec::new(),
            partial_messages: VecDeque::new(),
            now: None,
            pending_resets: 0,
            client_resets: resets((limits.max_streams as usize).saturating_mul(CLIENT_RESETS)),
            local_resets: resets(limits.max_local_resets),
            reset_streams: recent(),
            cancelled_streams: recent(),
            lingering: Lingering::default(),
            shutdown: GracefulShutdown::No,
            goaway_received: false,
            ping_acked: false,
        }
    }

    /// Whether the client has sent its preface and settings.
    pub(crate) fn handshake_done(&self) -> bool {
        self.handshake == ClientPreface::Done
    }

    /// Processes the frames that are complete, and returns how many bytes they were.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<usize, ConnectionError> {
        let mut taken = 0;
        if self.handshake == ClientPreface::Preface {
            taken = self.preface(bytes)?;
            if taken == 0 {
                return Ok(0);
            }
        }
        let too_large = |why| ConnectionError::new(ErrorCode::FrameSize, why);
        while let Some((frame, length)) = frames::first(&bytes[taken..]).map_err(too_large)? {
            self.take(&frame)?;
            taken += length;
        }
        Ok(taken)
    }

    /// Begins the calls that have arrived and were not reset meanwhile, in their order, until the turn is over.
    /// `begin` gives a call back that is too large for what remains of the turn. Calls wait while the client does
    /// not read its answers: a small call may have a large answer.
    pub(crate) fn begin_calls(
        &mut self,
        mut begin: impl FnMut(&mut Self, u32, RequestHead, RequestBody) -> Option<(RequestHead, Bytes)>,
    ) {
        let mut new_calls = std::mem::take(&mut self.new_calls);
        let mut begun = 0;
        for &id in &new_calls {
            if self.output_is_full() || self.queued_bytes >= MAX_QUEUED_BYTES || turn::remaining() == 0 {
                break;
            }
            let Some(stream) = self.streams.get_mut(&id) else {
                self.pending_resets = self.pending_resets.saturating_sub(1);
                begun += 1;
                continue;
            };
            let Some((head, body)) = stream.begin(id, &self.ledger) else {
                begun += 1;
                continue;
            };
            if stream.awaits_first_message() {
                self.unreserved.push(id);
            }
            self.return_stream_credit(id);
            if let Some((head, message)) = begin(self, id, head, body) {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.postpone(head, &message);
                }
                break;
            }
            begun += 1;
        }
        new_calls.drain(..begun);
        self.new_calls = new_calls;
        if self.new_calls.is_empty() {
            self.pending_resets = 0;
        }
    }

    /// Whether calls have arrived that have not begun.
    pub(crate) fn has_new_calls(&self) -> bool {
        !self.new_calls.is_empty()
    }

    /// Streams whose calls are to be cancelled, because they were reset.
    pub(crate) fn take_cancelled(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.cancelled)
    }

    /// Sends a PING to a silent client; [`Session::take_ping_ack`] says whether it was acknowledged. Unused
    /// capacity is freed.
    pub(crate) fn ping(&mut self) {
        self.ping_acked = false;
        if self.streams.is_empty() {
            self.streams = Streams::default();
            (self.new_calls, self.cancelled, self.resumable, self.blocked) = Default::default();
            (self.unreserved, self.partial_messages) = Default::default();
            self.open_calls.shrink();
        }
        frames::write(&mut self.output, kind::PING, 0, 0, &KEEPALIVE_PING);
    }

    /// Whether a keepalive PING was acknowledged since this was last asked.
    pub(crate) fn take_ping_ack(&mut self) -> bool {
        std::mem::take(&mut self.ping_acked)
    }

    /// Begins a graceful shutdown: calls in flight may finish, and so may those that the client sends before it
    /// knows (RFC 9113, 6.8).
    pub(crate) fn shut_down(&mut self) {
        if self.shutdown == GracefulShutdown::No {
            self.shutdown = GracefulShutdown::Announced;
            self.end_lingering();
            self.goaway(u32::MAX >> 1, ErrorCode::NoError, "");
            frames::write(&mut self.output, kind::PING, 0, 0, &SHUTDOWN_PING);
        }
    }

    /// Sends the final GOAWAY. It follows the acknowledgement of the shutdown PING, or a timeout: streams that the
    /// client opens from now on are ignored (RFC 9113, 6.8).
    pub(crate) fn finish_shutdown(&mut self) {
        if self.shutdown == GracefulShutdown::Announced {
            self.shutdown = GracefulShutdown::Final;
            self.goaway(self.last_stream_id, ErrorCode::NoError, "");
        }
    }

    /// Sends GOAWAY on a connection that is over, with the error if there was one. A client that does not speak
    /// HTTP/2 would not understand it.
    pub(crate) fn close(&mut self, error: Option<ConnectionError>) {
        if self.handshake == ClientPreface::Preface {
            return;
        }
        let (code, reason) = error.map_or((ErrorCode::NoError, ""), |error| (error.code, error.reason));
        self.goaway(self.last_stream_id, code, reason);
    }

    /// Whether all calls have ended and no further one will come.
    pub(crate) fn is_over(&self) -> bool {
        (self.goaway_received || self.shutdown == GracefulShutdown::Final) && self.streams.is_empty()
    }

    /// Whether so much output waits that nothing further is to be read or answered.
    pub(crate) fn output_is_full(&self) -> bool {
        self.output.len() >= MAX_OUTPUT
    }

    /// The bytes to be written. The caller removes what it has written.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    fn goaway(&mut self, last: u32, code: ErrorCode, reason: &'static str) {
        self.observer.observe(ConnectionEvent::Goaway(code), reason);
        let payload = [&last.to_be_bytes(), &(code as u32).to_be_bytes(), reason.as_bytes()].concat();
        frames::write(&mut self.output, kind::GOAWAY, 0, 0, &payload);
    }

    /// Resets a stream for a fault of the client (RFC 9113, 5.4.2).
    fn reset(&mut self, stream: u32, code: ErrorCode) -> Result<(), ConnectionError> {
        let now = self.now();
        if self.local_resets.add(now) {
            return Err(self.flood("too many of its streams were at fault"));
        }
        self.send_reset(stream, code);
        self.cancel_stream(stream);
        Ok(())
    }

    /// The connection error of a client that floods.
    fn flood(&self, reason: &'static str) -> ConnectionError {
        self.observer.observe(ConnectionEvent::Flood, reason);
        ConnectionError::new(ErrorCode::EnhanceYourCalm, reason)
    }

    /// Capacity for streams that a connection without streams keeps.
    fn kept_streams(&self) -> usize {
        self.limits.max_streams as usize / 2
    }

    fn send_reset(&mut self, stream: u32, code: ErrorCode) {
        frames::write(&mut self.output, kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
        self.reset_streams.remember(stream);
    }

    /// Removes a stream before its call, or at least its request, has ended.
    fn cancel_stream(&mut self, id: u32) {
        let Some(stream) = self.streams.remove(&id) else {
            self.take_lingering(id);
            return;
        };
        if stream.has_begun() {
            self.cancelled.push(id);
        }
        self.release(&stream);
    }

    /// What a removed stream had received is not read any more, and what it had queued is not sent.
    fn release(&mut self, stream: &CallStream) {
        if let Some(queued) = &stream.queued {
            self.queued_bytes -= queued.data.len();
        }
        self.held_by_streams -= stream.counted;
        self.open_calls.ended(stream.kind);
        let (due, in_advance) = stream.end();
        self.unused_credit += usize::try_from(in_advance).unwrap_or(usize::MAX);
        self.return_bytes(usize::try_from(due).unwrap_or(usize::MAX));
    }
}

/// The flag of acknowledged SETTINGS and PING.
const ACK: u8 = flag::ACK;
