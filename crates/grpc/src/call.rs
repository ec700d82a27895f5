//! One call: a future of its response, which may be ready at once.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tonic::Status;
use weir_time::deadlines::{Deadline, Deadlines};

use crate::deadline::deadline_exceeded;
use crate::reply::Reply;

/// The response of a call. It is boxed only if it is not ready.
pub enum Call {
    /// A ready response. It is taken once.
    Done(Option<Result<Reply, Status>>),
    /// A response that is not ready.
    Waiting(WaitingCall),
}

/// A call that ends at its deadline at the latest.
pub struct WaitingCall {
    future: Pin<Box<dyn Future<Output = Result<Reply, Status>> + Send>>,
    deadline: Option<Deadline>,
}

impl Call {
    /// Creates a call with its response.
    #[must_use]
    pub fn done(answer: Result<Reply, Status>) -> Self {
        Self::Done(Some(answer))
    }

    /// Creates a call that has failed.
    #[must_use]
    pub fn failed(status: Status) -> Self {
        Self::done(Err(status))
    }

    /// Waits for `future`, or ends with DEADLINE_EXCEEDED at the deadline.
    pub fn waiting(
        deadlines: &Deadlines,
        deadline: Option<Instant>,
        future: impl Future<Output = Result<Reply, Status>> + Send + 'static,
    ) -> Self {
        let deadline = deadline.map(|deadline| deadlines.at(deadline));
        Self::Waiting(WaitingCall { future: Box::pin(future), deadline })
    }
}

impl From<Status> for Call {
    fn from(status: Status) -> Self {
        Self::failed(status)
    }
}

impl Future for Call {
    type Output = Result<Reply, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Waiting(waiting) => waiting.poll(context),
        }
    }
}

impl WaitingCall {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, Status>> {
        if let Poll::Ready(answer) = self.future.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        match &mut self.deadline {
            Some(deadline) => deadline.poll_passed(context).map(|()| Err(deadline_exceeded())),
            None => Poll::Pending,
        }
    }
}
