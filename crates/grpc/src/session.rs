//! One HTTP/2 connection without its socket: bytes in, calls out; responses in, bytes out.
//!
//! The subset of RFC 9113 that a gRPC server needs. Frames are parsed in the read buffer. A stream keeps only the
//! state that its call still needs. Everything that a client can make grow has a bound: streams, header bytes,
//! windows, resets, and output ([`Session::output_is_full`]: nothing further is read then).

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

use crate::body::{ReadLedger, RequestBody};
use crate::decaying_count::DecayingCount;
use crate::error_code::{ConnectionError, ErrorCode};
use crate::events::{ConnectionEvent, ConnectionObserver};
use crate::frames::{self, DEFAULT_WINDOW, flag, kind};
use crate::in_flight::StreamingResponse;
use crate::limits::ConnectionLimits;
use crate::open_streams::OpenStreams;
use crate::repeated_headers::RequestDecoder;
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

/// Backpressure: with this many bytes of unsent output nothing further is read or answered.
const MAX_OUTPUT: usize = 128 << 10;

/// Bytes of responses queued for the client's flow-control windows, from which on no further call begins.
const MAX_QUEUED_BYTES: usize = 4 << 20;

/// Least number of reset streams that are remembered. Before it has our settings, a client may open more streams
/// than they allow.
const MIN_RESET_STREAMS: usize = 1024;

/// Period of the count of our resets: within it, it decays evenly to zero.
const LOCAL_RESETS_PERIOD: Duration = Duration::from_secs(10);

/// Period of the count of the client's resets. The default of 1,024 in it is 102,400 a second: honest clients cancel a
/// fraction of it, and a rapid reset sends several times as many.
const CLIENT_RESETS_PERIOD: Duration = Duration::from_millis(10);

/// Time without resets that is credit for a burst of them. While this process does not run, resets pile up in the
/// socket, and a client with deadlines cancels all its calls.
const CLIENT_RESETS_CREDIT: Duration = Duration::from_secs(1);

/// Opaque data of our PINGs (RFC 9113, 6.7).
const KEEPALIVE_PING: [u8; 8] = *b"weir:up?";
const SHUTDOWN_PING: [u8; 8] = *b"weir:bye";

/// The state of one connection.
pub(crate) struct Session {
    limits: ConnectionLimits,
    methods: Methods,
    observer: Arc<dyn ConnectionObserver>,
    handshake: ClientPreface,
    decoder: RequestDecoder,
    response_headers: ResponseHeaders,
    streams: Streams,
    /// The highest stream id that the client has opened.
    last_stream_id: u32,
    /// A header block whose CONTINUATION frames have not all arrived.
    header_block: Option<HeaderBlock>,
    /// The connection's receive window, and the bytes consumed since the last WINDOW_UPDATE.
    recv_window: i64,
    pending_credit: usize,
    /// Credit given in advance for messages that ended early.
    unused_credit: usize,
    /// The connection's send window, and the initial one of a new stream.
    send_window: i64,
    initial_send_window: i64,
    /// Upper bound of [`CallStream::send_window_delta`] of all streams.
    largest_send_window_delta: i64,
    /// Streams whose calls have not begun, in the order of their arrival.
    new_calls: Vec<u32>,
    /// Streams whose calls have to be cancelled.
    cancelled: Vec<u32>,
    /// Streaming responses that may be polled for more.
    resumable: Vec<StreamingResponse>,
    /// Streams blocked by a send window, and the bytes that they have queued.
    blocked: VecDeque<u32>,
    queued_bytes: usize,
    ledger: ReadLedger,
    output: Vec<u8>,
    open_calls: OpenCalls,
    /// Bytes of the buffer budget held by streams, lingering requests and the incomplete header block.
    held_by_streams: usize,
    /// Streams whose incomplete messages may need a reservation.
    unreserved: Vec<u32>,
    /// Messages that were incomplete at the end of a turn, the oldest first.
    partial_messages: VecDeque<PartialMessage>,
    /// The time of this turn, once it was read.
    now: Option<Instant>,
    /// Rate of calls that the client has reset.
    client_resets: DecayingCount,
    /// Rate of streams that were reset for a fault of the client.
    local_resets: DecayingCount,
    /// Streams that we have reset: frames in flight for them are ignored (RFC 9113, 5.1).
    reset_streams: RecentStreams,
    /// Streams that the client has reset. A late frame for them is a stream error, but does not count as a fault:
    /// clients (grpc-java on netty) send DATA that was queued before the RST_STREAM.
    cancelled_streams: RecentStreams,
    /// Requests that were answered before their end.
    lingering: Lingering,
    shutdown: GracefulShutdown,
    goaway_received: bool,
    /// True if the last keepalive PING was acknowledged.
    ping_acked: bool,
}

/// The handshake: what the client has still to send before its first request (RFC 9113, 3.4).
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
    /// GOAWAY with the highest possible stream id was sent. Streams that the client opens before it knows are
    /// answered.
    Announced,
    /// GOAWAY with the last stream id was sent: later streams are ignored.
    Final,
}

impl Session {
    pub(crate) fn new(
        limits: &ConnectionLimits,
        methods: Methods,
        observer: Arc<dyn ConnectionObserver>,
        open_streams: OpenStreams,
    ) -> Self {
        // As many streams may be in flight when their client learns of a reset.
        let recent = || RecentStreams::new((limits.max_streams as usize).max(MIN_RESET_STREAMS));
        Self {
            limits: limits.clone(),
            methods,
            observer,
            handshake: ClientPreface::Preface,
            decoder: RequestDecoder::default(),
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
            client_resets: DecayingCount::with_credit(
                limits.max_pending_resets,
                CLIENT_RESETS_PERIOD,
                CLIENT_RESETS_CREDIT,
            ),
            local_resets: DecayingCount::new(limits.max_local_resets, LOCAL_RESETS_PERIOD),
            reset_streams: recent(),
            cancelled_streams: recent(),
            lingering: Lingering::default(),
            shutdown: GracefulShutdown::No,
            goaway_received: false,
            ping_acked: false,
        }
    }

    /// True once the client has sent its preface and SETTINGS.
    pub(crate) fn handshake_done(&self) -> bool {
        self.handshake == ClientPreface::Done
    }

    /// Processes the complete frames and returns their length in bytes.
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
    /// `begin` gives back a call that is too large for the rest of the turn. Backpressure: calls wait while the
    /// client does not read its responses, because a small call may have a large response.
    pub(crate) fn begin_calls(&mut self, mut begin: impl FnMut(&mut Self, u32, RequestHead, RequestBody)) {
        let mut new_calls = std::mem::take(&mut self.new_calls);
        let mut begun = 0;
        for &id in &new_calls {
            if self.output_is_full() || self.queued_bytes >= MAX_QUEUED_BYTES || turn::remaining() == 0 {
                break;
            }
            let Some(stream) = self.streams.get_mut(&id) else {
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
            begin(self, id, head, body);
            begun += 1;
        }
        new_calls.drain(..begun);
        self.new_calls = new_calls;
    }

    /// True if calls have arrived that have not begun.
    pub(crate) fn has_new_calls(&self) -> bool {
        !self.new_calls.is_empty()
    }

    /// Takes the streams whose calls have to be cancelled, because they were reset.
    pub(crate) fn take_cancelled(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.cancelled)
    }

    /// Sends a keepalive PING; [`Session::take_ping_ack`] tells if it was acknowledged. Also frees unused capacity.
    pub(crate) fn ping(&mut self) {
        self.ping_acked = false;
        if self.streams.is_empty() {
            self.streams = Streams::default();
            (self.new_calls, self.cancelled, self.resumable, self.blocked) = Default::default();
            (self.unreserved, self.partial_messages) = Default::default();
            self.open_calls.shrink();
            self.decoder.shrink();
        }
        frames::write(&mut self.output, kind::PING, 0, 0, &KEEPALIVE_PING);
    }

    /// True if a keepalive PING was acknowledged since the last call of this.
    pub(crate) fn take_ping_ack(&mut self) -> bool {
        std::mem::take(&mut self.ping_acked)
    }

    /// Begins a graceful shutdown (RFC 9113, 6.8): calls in flight may finish, and so may those that the client
    /// sends before it knows.
    pub(crate) fn shut_down(&mut self) {
        if self.shutdown == GracefulShutdown::No {
            self.shutdown = GracefulShutdown::Announced;
            self.end_lingering();
            self.goaway(u32::MAX >> 1, ErrorCode::NoError, "");
            frames::write(&mut self.output, kind::PING, 0, 0, &SHUTDOWN_PING);
        }
    }

    /// Sends the final GOAWAY, after the acknowledgement of the shutdown PING or a timeout. Streams that the client
    /// opens from now on are ignored (RFC 9113, 6.8).
    pub(crate) fn finish_shutdown(&mut self) {
        if self.shutdown == GracefulShutdown::Announced {
            self.shutdown = GracefulShutdown::Final;
            self.goaway(self.last_stream_id, ErrorCode::NoError, "");
        }
    }

    /// Sends GOAWAY on a connection that is over, with the error if there is one. Nothing is sent before the
    /// client's preface: the client may not speak HTTP/2.
    pub(crate) fn close(&mut self, error: Option<ConnectionError>) {
        if self.handshake == ClientPreface::Preface {
            return;
        }
        let (code, reason) = error.map_or((ErrorCode::NoError, ""), |error| (error.code, error.reason));
        self.goaway(self.last_stream_id, code, reason);
    }

    /// True if all calls have ended and no further one can begin.
    pub(crate) fn is_over(&self) -> bool {
        (self.goaway_received || self.shutdown == GracefulShutdown::Final) && self.streams.is_empty()
    }

    /// True if there is so much unsent output that nothing further is read or answered (backpressure).
    pub(crate) fn output_is_full(&self) -> bool {
        self.output.len() >= MAX_OUTPUT
    }

    /// Returns the unsent output. The caller removes what it has written.
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

    fn flood(&self, reason: &'static str) -> ConnectionError {
        self.observer.observe(ConnectionEvent::Flood, reason);
        ConnectionError::new(ErrorCode::EnhanceYourCalm, reason)
    }

    /// Streams for which a connection without streams keeps capacity.
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

    /// Releases a removed stream: its unread bytes and its queued data are dropped.
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

/// The ACK flag of SETTINGS and PING.
const ACK: u8 = flag::ACK;
