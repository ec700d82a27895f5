//! One connection's calls: those that arrive together are run one after the other, as soon as all of them
//! have been read, and answered together as far as they can be.
//!
//! A call that is run before the others have been read would cost a write to the socket of its own; and a
//! task for each an allocation and a turn of the scheduler, so that also those that wait for a store are
//! part of their connection. This drives the h2 crate itself: a general server's layer over it (its request
//! and response bodies, its clocks) costs more than a decision does.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use tokio::sync::watch;

use super::answer::{self, Waiting};
use super::connection::Connection;
use super::dispatch::Dispatch;
use super::keepalive::Keepalive;
use super::questions::Questions;
use crate::config::ServerLimits;
use crate::service::{Begun, Call};
use crate::store::Store;

/// What a caller may send ahead on one stream, and on all of a connection together. Eight streams whose
/// answers nobody reads leave room for the other calls of their connection.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// A connection that has begun to speak.
pub(super) struct Http2<S> {
    http: h2::server::Connection<Connection, Bytes>,
    keepalive: Option<Keepalive>,
    services: Arc<Dispatch<S>>,
    leaving: watch::Receiver<()>,
    /// The calls that have been read and not begun.
    arrived: Vec<Arrived>,
    /// Whether there was any since they were last run.
    any: bool,
    calls: Calls,
}

/// The calls that have begun.
#[derive(Default)]
struct Calls {
    /// Those that can be answered at once.
    questions: Questions,
    /// Those that wait for something.
    waiting: FuturesUnordered<Waiting>,
}

type Arrived = (http::Request<RecvStream>, SendResponse<Bytes>);

impl<S: Store> Http2<S> {
    /// Waits for the other side to begin. `leaving` tells its streams when they are to end.
    pub(super) async fn open(
        connection: Connection,
        services: Arc<Dispatch<S>>,
        limits: &ServerLimits,
        leaving: watch::Receiver<()>,
    ) -> Result<Self, h2::Error> {
        let heard = connection.heard();
        let mut http = within(limits).handshake(connection).await?;
        let keepalive = http.ping_pong().map(|pings| Keepalive::new(pings, heard, limits));
        let (arrived, any, calls) = (Vec::new(), false, Calls::default());
        Ok(Self { http, keepalive, services, leaving, arrived, any, calls })
    }

    /// Until the connection ends.
    pub(super) async fn serve(&mut self) -> Result<(), h2::Error> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Takes no further calls: [`Http2::serve`] ends when those in flight have ended.
    pub(super) fn leave(&mut self) {
        self.http.graceful_shutdown();
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        if self.keepalive.as_mut().is_some_and(|it| it.poll_vanished(context).is_ready()) {
            tracing::debug!("a connection was closed: it did not answer a PING in time");
            // As much of a farewell as goes out at once.
            self.http.abrupt_shutdown(Reason::NO_ERROR);
            let _ = pin!(self.http.accept()).poll(context);
            return Poll::Ready(Ok(()));
        }
        if !self.calls.waiting.is_empty() {
            self.run(context);
        }
        loop {
            let polled = pin!(self.http.accept()).poll(context);
            match polled {
                Poll::Ready(Some(Ok((request, respond)))) => self.take(request, respond),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                // What has been answered is sent, and what has come meanwhile is read, by looking again.
                Poll::Pending if self.run(context) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Takes a call. A question is read as long as it is at hand, unless what is to be decided before it is of
    /// another kind.
    fn take(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.any = true;
        if self.arrived.is_empty() && Dispatch::<S>::is_question(&request) {
            let services = &self.services;
            self.calls.begin(respond, || services.ask(request));
        } else {
            self.arrived.push((request, respond));
        }
    }

    /// Runs what has been read and what need wait no longer; whether there was any.
    fn run(&mut self, context: &mut Context<'_>) -> bool {
        let Self { services, leaving, arrived, calls, .. } = self;
        calls.questions.answer(services);
        for (request, respond) in arrived.drain(..) {
            if Dispatch::<S>::is_question(&request) {
                calls.begin(respond, || services.ask(request));
            } else {
                // What came before is decided before.
                calls.questions.answer(services);
                calls.begin(respond, || Begun::Call(services.call(request, leaving)));
            }
        }
        calls.questions.answer(services);
        let mut any = std::mem::take(&mut self.any);
        while let Poll::Ready(Some(())) = self.calls.waiting.poll_next_unpin(context) {
            any = true;
        }
        any
    }
}

impl Calls {
    fn begin(&mut self, mut respond: SendResponse<Bytes>, begin: impl FnOnce() -> Begun) {
        match catch_unwind(AssertUnwindSafe(begin)) {
            Ok(Begun::Posed(posed)) => self.questions.push(posed, respond),
            Ok(Begun::Call(Call::Done(Some(response)))) => answer::answer(&mut respond, response),
            Ok(Begun::Call(call)) => self.waiting.push(Waiting::new(call, respond)),
            // A panic is the end of one call, and a log line that the hook has written.
            Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }
}

/// HTTP/2 within its bounds.
fn within(limits: &ServerLimits) -> h2::server::Builder {
    let mut http = h2::server::Builder::new();
    http.initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(limits.max_streams)
        .max_pending_accept_reset_streams(limits.max_pending_resets)
        .max_local_error_reset_streams(Some(limits.max_local_resets))
        .max_header_list_size(limits.max_header_bytes);
    http
}
