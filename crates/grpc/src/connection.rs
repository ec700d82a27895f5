//! One HTTP/2 connection: its byte stream and its calls, all in one task.
//!
//! Calls that arrive together are answered together, in one write. Calls in flight are part of the connection's
//! task: a task for each would cost as much as the call itself.

mod calls;
mod io;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::Error as IoError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Sleep;

use crate::budget::{Account, WorkerBudget};
use crate::current_peer::{CurrentPeer, with_peer};
use crate::error_code::ConnectionError;
use crate::events::ConnectionObserver;
use crate::in_flight::InFlightCalls;
use crate::keepalive::Keepalive;
use crate::limits::ConnectionLimits;
use crate::peer::Peer;
use crate::reading_time::ReadingTime;
use crate::service::{ConnectionCheck, HotService};
use crate::session::Session;
use crate::transport::ByteStream;
use crate::turn;

/// Reads per turn, or writes of a full output buffer. Together with [`turn::DECISIONS_PER_TURN`] this bounds a
/// turn.
const READS_PER_TURN: usize = 4;

/// Capacity in bytes of the largest output buffer that is kept for the next connection.
const MAX_KEPT_OUTPUT: usize = 1 << 20;

thread_local! {
    /// Output buffer of the connection that is being polled.
    static OUTPUT_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One connection.
pub struct Http2Connection<I, H> {
    transport: ByteStream<I>,
    session: Session,
    keepalive: Keepalive,
    service: Arc<H>,
    check: ConnectionCheck,
    from: CurrentPeer,
    closing: watch::Receiver<()>,
    in_flight: InFlightCalls,
    /// The beginning of a frame that is incomplete.
    partial_frame: Vec<u8>,
    error: Option<ConnectionError>,
    turn: TurnState,
    account: Account,
    reading: ReadingTime,
    /// Fires when the oldest incomplete message is due.
    message_timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Default)]
struct TurnState {
    /// Decisions made in this turn.
    spent: usize,
    /// True once the turn is over, until the other connections have been polled.
    over: bool,
}

/// State shared by the connections of one worker.
#[derive(Clone)]
pub struct ConnectionContext {
    /// Limits of one connection.
    pub limits: ConnectionLimits,
    /// The worker's part of the buffer budget.
    pub budget: WorkerBudget,
    /// Receives the events.
    pub observer: Arc<dyn ConnectionObserver>,
}

/// The reason why a connection ended, if neither its client nor its age ended it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionEnd {
    /// The byte stream failed.
    #[error("{0}")]
    Io(#[from] IoError),
    /// The client broke the protocol.
    #[error("{reason} ({code:?})", reason = .0.reason, code = .0.code)]
    Protocol(ConnectionError),
}

impl<I: AsyncRead + AsyncWrite + Unpin, H: HotService> Http2Connection<I, H> {
    /// Creates a connection with `peer` over `stream`. `closing` tells streaming calls that it is about to end. Must
    /// be called within a runtime.
    pub fn new(
        stream: I,
        peer: &Arc<Peer>,
        service: Arc<H>,
        shared: &ConnectionContext,
        closing: watch::Receiver<()>,
    ) -> Self {
        let ConnectionContext { limits, budget, observer } = shared;
        let transport = ByteStream::new(stream, limits.handshake_timeout);
        let keepalive = Keepalive::new(transport.activity(), limits);
        Self {
            transport,
            session: Session::new(
                limits,
                service.methods().clone(),
                Arc::clone(observer),
                budget.budget().streams().clone(),
            ),
            keepalive,
            check: service.methods().connected(peer),
            from: CurrentPeer::from(&**peer),
            service,
            closing,
            in_flight: InFlightCalls::default(),
            partial_frame: Vec::new(),
            error: None,
            turn: TurnState::default(),
            account: budget.open(),
            reading: ReadingTime::default(),
            message_timer: None,
        }
    }

    /// Serves until the connection ends.
    pub async fn serve(&mut self) -> Result<(), ConnectionEnd> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Serves until the client has completed the handshake. If the connection ends before that, returns how it
    /// ended.
    pub async fn serve_handshake(&mut self) -> Option<Result<(), ConnectionEnd>> {
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.handshake_done() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// True once the client has completed the handshake.
    pub fn handshake_done(&self) -> bool {
        self.session.handshake_done()
    }

    /// Begins a graceful shutdown: [`Http2Connection::serve`] ends when the calls in flight have ended. Call it
    /// only after the handshake. Before it, the server's first frame must be SETTINGS (RFC 9113, 3.4), so drop the
    /// connection instead.
    pub fn shut_down(&mut self) {
        self.session.shut_down();
    }

    /// Sends the final GOAWAY without a further wait for the client's PING acknowledgement. Streams that it opens
    /// from now on are ignored.
    pub fn finish_shutdown(&mut self) {
        self.session.finish_shutdown();
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        if self.session.output().capacity() == 0 {
            *self.session.output() = OUTPUT_BUFFER.take();
        }
        let polled = self.poll_in_turn(context);
        if self.session.output().is_empty() {
            let buffer = std::mem::take(self.session.output());
            OUTPUT_BUFFER.with_borrow_mut(|kept| {
                if buffer.capacity() > kept.capacity() && buffer.capacity() <= MAX_KEPT_OUTPUT {
                    *kept = buffer;
                }
            });
        }
        polled
    }

    /// Polls the connection unless its turn is over. Then it yields twice: the runtime polls its sockets only when
    /// no task is ready, and this connection's socket may come before that of an earlier call.
    fn poll_in_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        if std::mem::take(&mut self.turn.over) {
            self.turn.spent = 0;
            turn::yield_to_others(context);
            return Poll::Pending;
        }
        turn::enter(self.turn.spent);
        let polled = with_peer(self.from, || self.poll_turn(context));
        self.turn.spent = turn::leave();
        polled
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        let mut watched = false;
        self.session.begin_turn();
        for _ in 0..READS_PER_TURN {
            // Before the handshake its timeout watches the connection instead.
            if !watched && self.handshake_done() {
                watched = true;
                self.transport.handshake_done();
                if self.keepalive.poll_dead(&mut self.session, context).is_ready() {
                    tracing::debug!("a connection was closed: the client did not acknowledge a PING in time");
                    self.session.close(None);
                    // Best effort: as much of the GOAWAY as can be written at once.
                    let _ = self.poll_write(context);
                    return Poll::Ready(Ok(()));
                }
            }
            self.run(context);
            let was_full = self.session.output_is_full();
            let mut written = self.poll_write(context)?;
            if self.settle(context) {
                written = self.poll_write(context)?;
            }
            if self.session.is_over() || self.error.is_some() {
                return self.poll_end(context, written);
            }
            if self.session.output_is_full() {
                if self.reading.is_running() {
                    self.reading.pause(self.session.now());
                }
                return Poll::Pending;
            }
            if turn::remaining() == 0 || (!was_full && self.session.has_new_calls()) {
                break;
            }
            // Calls that waited for space in the output may begin.
            if was_full {
                continue;
            }
            if !self.reading.is_running() {
                self.reading.resume(self.session.now());
            }
            // A half-closed socket counts as closed: no gRPC client shuts down its sending side and keeps reading.
            match self.poll_read(context)? {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Ok(())),
                // All received bytes were read, so an incomplete message may be late now.
                Poll::Pending if self.poll_late_messages(context).is_pending() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        self.turn.over = true;
        turn::yield_to_others(context);
        Poll::Pending
    }

    /// Ends the turn's accounting; true if that has produced output.
    fn settle(&mut self, context: &Context<'_>) -> bool {
        let before = self.session.output().len();
        let demanded = self.account.demanded(context.waker());
        if let Err(error) = self.session.settle(&mut self.account, &self.reading, demanded) {
            self.session.close(Some(error));
            self.error = Some(error);
        }
        let has_ended = self.session.output().len() > before;
        if has_ended {
            // Ended calls hold their memory until they are dropped, and nothing else may wake this connection soon.
            self.in_flight.cancel_all_of(self.session.take_cancelled());
        }
        has_ended
    }

    /// Ends late messages and lingering requests. Ready once something was past its deadline.
    fn poll_late_messages(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // The timer is kept: many clients send the headers of each call separately.
        let (due, rest_due) = (self.session.message_due(), self.session.lingering_due());
        if due.is_none() && rest_due.is_none() {
            return Poll::Pending;
        }
        let now = self.session.now();
        let due = due.map(|due| now + due.saturating_sub(self.reading.total(now)));
        let Some(next) = due.into_iter().chain(rest_due).min() else { return Poll::Pending };
        if next > now {
            ready!(self.poll_message_timer(next, context));
        }
        self.session.begin_turn();
        let reading = self.reading.total(self.session.now());
        self.session.end_late_messages(reading);
        self.session.end_late_requests(next.max(now));
        Poll::Ready(())
    }

    /// Ready at `at`.
    fn poll_message_timer(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.message_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
        if timer.deadline() != at.into() {
            timer.as_mut().reset(at.into());
        }
        timer.as_mut().poll(context)
    }
}
