//! One HTTP/2 connection: its stream of bytes and its calls, all in one task.
//!
//! What arrives together is answered together, in one write. Calls that wait for their answers are part of the
//! connection's task: a task for each would cost as much as what it serves.

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
use crate::error_code::ConnectionError;
use crate::events::ConnectionObserver;
use crate::in_flight::InFlightCalls;
use crate::keepalive::Keepalive;
use crate::limits::ConnectionLimits;
use crate::reading_time::ReadingTime;
use crate::service::HotService;
use crate::session::Session;
use crate::transport::ByteStream;
use crate::turn;

/// Reads of one turn, or writes of as much output as may wait. With [`turn::DECISIONS_PER_TURN`] they bound it.
const READS_PER_TURN: usize = 4;

/// The largest output buffer that is kept for the next connection.
const MAX_KEPT_OUTPUT: usize = 1 << 20;

thread_local! {
    /// The output buffer of the connection whose turn it is.
    static OUTPUT_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One connection.
pub struct Http2Connection<I, H> {
    transport: ByteStream<I>,
    session: Session,
    keepalive: Keepalive,
    service: Arc<H>,
    closing: watch::Receiver<()>,
    in_flight: InFlightCalls,
    /// The beginning of a frame whose rest has not arrived.
    partial_frame: Vec<u8>,
    error: Option<ConnectionError>,
    turn: TurnState,
    account: Account,
    reading: ReadingTime,
    /// Runs out when the oldest incomplete message is due.
    message_timer: Option<Pin<Box<Sleep>>>,
}

/// How far a connection is in its turn.
#[derive(Default)]
struct TurnState {
    /// Decisions that it has made.
    spent: usize,
    /// Whether it is over, and the others have not all been polled.
    over: bool,
}

/// What connections of one worker share.
#[derive(Clone)]
pub struct ConnectionContext {
    /// Bounds of one connection.
    pub limits: ConnectionLimits,
    /// The worker's part of the buffer budget.
    pub budget: WorkerBudget,
    /// Takes note of events.
    pub observer: Arc<dyn ConnectionObserver>,
}

/// Why a connection ended otherwise than by its client or its age.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionEnd {
    /// The stream of bytes failed.
    #[error("{0}")]
    Io(#[from] IoError),
    /// The client broke the protocol.
    #[error("{reason} ({code:?})", reason = .0.reason, code = .0.code)]
    Protocol(ConnectionError),
}

impl<I: AsyncRead + AsyncWrite + Unpin, H: HotService> Http2Connection<I, H> {
    /// A connection over `stream`. `closing` changes for streaming calls when it is about to end. Within a
    /// runtime.
    pub fn new(stream: I, service: Arc<H>, shared: &ConnectionContext, closing: watch::Receiver<()>) -> Self {
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

    /// Serves until the client has completed the handshake. If the connection ends before, how it did.
    pub async fn serve_handshake(&mut self) -> Option<Result<(), ConnectionEnd>> {
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.handshake_done() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Whether the client has completed the handshake.
    pub fn handshake_done(&self) -> bool {
        self.session.handshake_done()
    }

    /// Begins a graceful shutdown: [`Http2Connection::serve`] ends when the calls in flight have ended. Only after the
    /// handshake: before it, the server's first frame must be SETTINGS (RFC 9113, 3.4), so drop the connection instead.
    pub fn shut_down(&mut self) {
        self.session.shut_down();
    }

    /// Ends the shutdown's wait for the client's PING acknowledgement: streams that it opens from now on are
    /// ignored.
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

    /// Polls the connection unless its turn is over. Then others go first, twice: the runtime looks at its sockets
    /// only when it has nothing to poll, and this one's socket may be before that of a call which came earlier.
    fn poll_in_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        if std::mem::take(&mut self.turn.over) {
            self.turn.spent = 0;
            turn::yield_to_others(context);
            return Poll::Pending;
        }
        turn::enter(self.turn.spent);
        let polled = self.poll_turn(context);
        self.turn.spent = turn::leave();
        polled
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        let mut watched = false;
        self.session.begin_turn();
        for _ in 0..READS_PER_TURN {
            // Before the handshake its own timeout watches the connection.
            if !watched && self.handshake_done() {
                watched = true;
                self.transport.handshake_done();
                if self.keepalive.poll_dead(&mut self.session, context).is_ready() {
                    tracing::debug!("a connection was closed: the client did not acknowledge a PING in time");
                    self.session.close(None);
                    // As much of the GOAWAY as goes out at once.
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
            // Calls that waited for the output may go on.
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
                // Everything that has arrived was read: now a message that is not complete may be late.
                Poll::Pending if self.poll_late_messages(context).is_pending() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        self.turn.over = true;
        turn::yield_to_others(context);
        Poll::Pending
    }

    /// Counts what the connection holds; whether there is output again.
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

    /// Ready when messages were late, and their calls were ended; or when an answered request was read for long enough.
    fn poll_late_messages(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // The timer is kept: many clients send the headers of each call by themselves.
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

    /// Ready at this time.
    fn poll_message_timer(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.message_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
        if timer.deadline() != at.into() {
            timer.as_mut().reset(at.into());
        }
        timer.as_mut().poll(context)
    }
}
