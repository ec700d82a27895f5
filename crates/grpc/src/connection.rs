//! One HTTP/2 connection: its stream of bytes and its calls, all in one task.
//!
//! What arrives together is answered together, in one write. Calls that wait for their answers are part of the
//! connection's task: a task for each would cost as much as what it serves.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tonic::Status;
use tonic::metadata::MetadataValue;

use crate::body::RequestBody;
use crate::call::Call;
use crate::error_code::ConnectionError;
use crate::in_flight::{Event, InFlightCalls};
use crate::keepalive::Keepalive;
use crate::limits::Limits;
use crate::messages::Messages;
use crate::pending::PendingBatch;
use crate::request_headers::RequestHead;
use crate::service::{Begun, HotService, IncomingCall, MethodId};
use crate::session::Session;
use crate::transport::Transport;

/// Bytes that are read at a time.
const READ: usize = 64 << 10;

/// Reads or full writes after which other connections have their turn.
const TURN: usize = 4;

/// The largest output buffer that is kept for the next connection.
const MAX_KEPT_OUTPUT: usize = 1 << 20;

thread_local! {
    /// The read buffer. Frames are taken out of it at once, so an idle connection has none.
    static READ_BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);

    /// The output buffer of the connection whose turn it is.
    static OUTPUT_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };

    /// The calls that it answers together.
    static BATCHES: RefCell<PendingBatch> = RefCell::default();
}

/// One connection.
pub struct Http2Connection<I, H> {
    transport: Transport<I>,
    session: Session,
    keepalive: Keepalive,
    service: Arc<H>,
    closing: watch::Receiver<()>,
    in_flight: InFlightCalls,
    /// The beginning of a frame whose rest has not arrived.
    partial_frame: Vec<u8>,
    error: Option<ConnectionError>,
}

/// Why a connection ended otherwise than by its client or its age.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionEnd {
    /// The stream of bytes failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The client broke the protocol.
    #[error("{reason} ({code:?})", reason = .0.reason, code = .0.code)]
    Protocol(ConnectionError),
}

impl<I: AsyncRead + AsyncWrite + Unpin, H: HotService> Http2Connection<I, H> {
    /// A connection over `stream`. Streaming calls are told by `closing` that it is about to end. Within a
    /// runtime.
    pub fn new(stream: I, service: Arc<H>, limits: &Limits, closing: watch::Receiver<()>) -> Self {
        let transport = Transport::new(stream, limits.handshake_timeout);
        let keepalive = Keepalive::new(transport.activity(), limits);
        Self {
            transport,
            session: Session::new(limits, service.methods().clone()),
            keepalive,
            service,
            closing,
            in_flight: InFlightCalls::default(),
            partial_frame: Vec::new(),
            error: None,
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

    /// Begins a graceful shutdown: [`Http2Connection::serve`] ends when the calls in flight have ended.
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
        let polled = self.poll_turn(context);
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

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        let mut watched = false;
        for _ in 0..TURN {
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
            let written = self.poll_write(context)?;
            if self.session.is_over() || self.error.is_some() {
                return self.poll_end(context, written);
            }
            if self.session.output_is_full() {
                return Poll::Pending;
            }
            // Calls that waited for the output may go on.
            if was_full {
                continue;
            }
            // A half-closed socket counts as closed: no gRPC client shuts down its sending side and keeps reading.
            if !ready!(self.poll_read(context))? {
                return Poll::Ready(Ok(()));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Begins the calls that have arrived, and goes on with those in flight.
    fn run(&mut self, context: &mut Context<'_>) {
        loop {
            // Queued data first: then there may be space for the answers of further calls.
            self.session.send_queued();
            self.begin_calls();
            let Self { session, in_flight, .. } = self;
            in_flight.cancel_all_of(session.take_cancelled());
            session.take_resumable().into_iter().for_each(|response| in_flight.body(response));
            let mut any = false;
            while !session.output_is_full()
                && let Poll::Ready(Some(event)) = in_flight.poll_next(context)
            {
                any = true;
                match event {
                    Event::Answered(stream, answer) => session.answer(stream, answer),
                    Event::ResponseBody(response, piece) => session.continue_response(response, piece),
                    Event::Failed(stream) => session.failed(stream),
                    Event::Cancelled => {}
                }
            }
            session.return_credit();
            if !any {
                return;
            }
        }
    }

    /// Begins the calls that have arrived, in their order: each is decided after those before it.
    fn begin_calls(&mut self) {
        let Self { session, service, closing, in_flight, .. } = self;
        let mut batch = BATCHES.take();
        session.begin_calls(|session, stream, head, body| {
            if !service.methods().is_together(head.method) {
                batch.answer(&**service, session, in_flight);
            }
            match catch_unwind(AssertUnwindSafe(|| begin(&**service, head, body, closing))) {
                Ok(Begun::Pending(call)) => batch.push(call, stream),
                Ok(Begun::Call(Call::Done(Some(answer)))) => session.answer(stream, answer),
                Ok(Begun::Call(call)) => in_flight.call(stream, call),
                // A panic ends one call; the panic hook has written a log line.
                Err(_) => session.failed(stream),
            }
        });
        batch.answer(&**service, session, in_flight);
        BATCHES.set(batch);
    }

    /// Writes the output; whether that was all of it.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<bool, io::Error> {
        let output = self.session.output();
        let mut written = 0;
        while written < output.len() {
            match Pin::new(&mut self.transport).poll_write(context, &output[written..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(bytes) => written += bytes,
                Poll::Pending => {
                    output.drain(..written);
                    return Ok(false);
                }
            }
        }
        output.clear();
        Ok(true)
    }

    /// Reads once and processes the frames that are complete; false at the end of the stream.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, ConnectionEnd>> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.transport).poll_read(context, &mut buffer))?;
            let bytes = buffer.filled();
            if bytes.is_empty() {
                return Poll::Ready(Ok(false));
            }
            let taken = if self.partial_frame.is_empty() {
                let taken = self.session.read(bytes);
                self.partial_frame.extend_from_slice(&bytes[*taken.as_ref().unwrap_or(&bytes.len())..]);
                taken
            } else {
                self.partial_frame.extend_from_slice(bytes);
                let taken = self.session.read(&self.partial_frame);
                self.partial_frame.drain(..*taken.as_ref().unwrap_or(&0));
                if self.partial_frame.is_empty() {
                    self.partial_frame = Vec::new();
                }
                taken
            };
            if let Err(error) = taken {
                self.session.close(Some(error));
                self.error = Some(error);
            }
            Poll::Ready(Ok(true))
        })
    }

    /// Writes the last output; after an error only what goes out at once.
    fn poll_end(&mut self, context: &mut Context<'_>, written: bool) -> Poll<Result<(), ConnectionEnd>> {
        if let Some(error) = self.error {
            let _ = Pin::new(&mut self.transport).poll_shutdown(context);
            return Poll::Ready(Err(ConnectionEnd::Protocol(error)));
        }
        if !written {
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.transport).poll_shutdown(context))?;
        Poll::Ready(Ok(()))
    }
}

/// Begins one call.
fn begin<H: HotService>(
    service: &H,
    mut head: RequestHead,
    body: RequestBody,
    closing: &watch::Receiver<()>,
) -> Begun {
    let mut context = head.context();
    if let Err(status) = service.methods().check(head.path(), head.method, &mut context) {
        return Begun::Call(Call::failed(status));
    }
    if let Some(encoding) = head.encoding.take() {
        return Begun::Call(Call::failed(unknown_encoding(&encoding)));
    }
    let Some(method @ MethodId(_)) = head.method else {
        return Begun::Call(service.other(context, head.request(body)));
    };
    let messages = Messages::of(body, service.methods().largest_message(Some(method)));
    service.begin(method, IncomingCall { context, messages }, closing)
}

fn unknown_encoding(encoding: &str) -> Status {
    let mut status = Status::unimplemented(format!(
        "grpc-encoding is {encoding:?}: messages are not compressed here, because they are small"
    ));
    status.metadata_mut().insert("grpc-accept-encoding", MetadataValue::from_static("identity"));
    status
}
