//! The futures of a connection: calls in flight and streaming responses. All of them are part of the connection's
//! task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http_body::Frame;
use tonic::Status;

use crate::call::Call;
use crate::reply::{Reply, ResponseBody};

/// All calls and streaming responses in flight.
#[derive(Default)]
pub(crate) struct InFlightCalls(FuturesUnordered<CallFuture>);

pub(crate) struct StreamingResponse {
    pub(crate) stream: u32,
    pub(crate) body: ResponseBody,
}

/// The result of a future of the connection.
pub(crate) enum FutureEvent {
    /// The response of a call.
    Answered(u32, Result<Reply, Status>),
    /// The next frame of a streaming response; `None` at its end.
    ResponseBody(StreamingResponse, Option<Frame<Bytes>>),
    /// The call panicked, or its response body failed.
    Failed(u32),
    /// The call was cancelled.
    Cancelled,
}

/// One future, and the waker of its last poll: a cancelled future must be polled once more.
struct CallFuture(Option<FutureKind>, Option<Waker>);

enum FutureKind {
    Call(u32, Call),
    Body(StreamingResponse),
}

impl InFlightCalls {
    pub(crate) fn call(&self, stream: u32, call: Call) {
        self.0.push(CallFuture(Some(FutureKind::Call(stream, call)), None));
    }

    /// Adds a streaming response, for its next frame.
    pub(crate) fn body(&self, response: StreamingResponse) {
        self.0.push(CallFuture(Some(FutureKind::Body(response)), None));
    }

    /// Cancels the futures of these streams, in one pass.
    pub(crate) fn cancel_all_of(&mut self, mut streams: Vec<u32>) {
        if streams.is_empty() {
            return;
        }
        streams.sort_unstable();
        for mut task in Pin::new(&mut self.0).iter_pin_mut() {
            let is_cancelled = |kind: &FutureKind| streams.binary_search(&kind.stream()).is_ok();
            if task.0.take_if(|kind| is_cancelled(kind)).is_some()
                && let Some(waker) = task.1.take()
            {
                waker.wake();
            }
        }
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<FutureEvent>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        self.0.poll_next_unpin(context)
    }
}

impl FutureKind {
    const fn stream(&self) -> u32 {
        match self {
            Self::Call(stream, _) | Self::Body(StreamingResponse { stream, .. }) => *stream,
        }
    }
}

impl Future for CallFuture {
    type Output = FutureEvent;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FutureEvent> {
        let Some(mut kind) = self.0.take() else { return Poll::Ready(FutureEvent::Cancelled) };
        let stream = kind.stream();
        // As in a task, a panic ends one call only; the panic hook has written a log line.
        match catch_unwind(AssertUnwindSafe(|| kind.poll(context))) {
            Ok(Poll::Ready(event)) => Poll::Ready(event.with(kind)),
            Ok(Poll::Pending) => {
                self.0 = Some(kind);
                match &mut self.1 {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            Err(_) => Poll::Ready(FutureEvent::Failed(stream)),
        }
    }
}

enum PollOutput {
    Answer(Result<Reply, Status>),
    Piece(Option<Frame<Bytes>>),
    Failed,
}

impl FutureKind {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<PollOutput> {
        Poll::Ready(match self {
            Self::Call(_, call) => PollOutput::Answer(ready!(Pin::new(call).poll(context))),
            Self::Body(StreamingResponse { body, .. }) => match ready!(body.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => PollOutput::Piece(Some(frame)),
                Some(Err(_)) => PollOutput::Failed,
                None => PollOutput::Piece(None),
            },
        })
    }
}

impl PollOutput {
    fn with(self, kind: FutureKind) -> FutureEvent {
        match (self, kind) {
            (Self::Answer(answer), kind) => FutureEvent::Answered(kind.stream(), answer),
            (Self::Piece(piece), FutureKind::Body(response)) => FutureEvent::ResponseBody(response, piece),
            (Self::Piece(_) | Self::Failed, kind) => FutureEvent::Failed(kind.stream()),
        }
    }
}
