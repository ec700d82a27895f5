//! One call: its context, and its end, which may be there at once.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::Body;
use tonic::Status;

use super::messages::Messages;
use super::{Reply, deadline};
use crate::deadlines::{Deadline, Deadlines};

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// The end of a call. It is boxed only where it has to be waited for.
pub enum Call {
    /// It is there, and taken once.
    Done(Option<Result<Reply, Status>>),
    /// It will come.
    Waiting(Waiting),
}

/// A call that ends some time, but no later than at its caller's deadline.
pub struct Waiting {
    future: Pin<Box<dyn Future<Output = Result<Reply, Status>> + Send>>,
    deadline: Option<Deadline>,
}

/// A body that callers send.
pub trait Sent: Body<Data = Bytes> + Send + Unpin + 'static {}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Sent for B {}

impl Call {
    pub(super) fn done(ended: Result<Reply, Status>) -> Self {
        Self::Done(Some(ended))
    }

    /// A call that has failed.
    pub fn failed(status: Status) -> Self {
        Self::done(Err(status))
    }

    /// What `serve` ends with, but no later than at the deadline that the request names.
    pub(crate) fn until_deadline<B, F>(
        deadlines: &Deadlines,
        request: http::Request<B>,
        serve: impl FnOnce(http::Request<B>) -> F,
    ) -> Self
    where
        F: Future<Output = Result<Reply, Status>> + Send + 'static,
    {
        let deadline = deadline::of(request.headers());
        Self::waiting(deadlines, deadline, serve(request))
    }

    /// The end of `future`, but no later than at the caller's deadline.
    pub(super) fn waiting(
        deadlines: &Deadlines,
        deadline: Option<Instant>,
        future: impl Future<Output = Result<Reply, Status>> + Send + 'static,
    ) -> Self {
        let deadline = deadline.map(|deadline| deadlines.at(deadline));
        Self::Waiting(Waiting { future: Box::pin(future), deadline })
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
            Self::Done(ended) => ended.take().map_or(Poll::Pending, Poll::Ready),
            Self::Waiting(waiting) => waiting.poll(context),
        }
    }
}

impl Waiting {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, Status>> {
        if let Poll::Ready(ended) = self.future.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        match &mut self.deadline {
            Some(deadline) => deadline.poll_passed(context).map(|()| Err(deadline::passed())),
            None => Poll::Pending,
        }
    }
}

/// What every method of ours begins with: `serve` is given until when the caller waits, and what it sends, in
/// messages of at most `largest` bytes, if the call can be read at all.
#[inline]
pub(super) fn open<B: Sent, C: From<Status>>(
    request: http::Request<B>,
    largest: usize,
    serve: impl FnOnce(Option<Instant>, Messages<B>) -> C,
) -> C {
    match deadline_of(request.headers()) {
        Ok(deadline) => serve(deadline, Messages::of(request.into_body(), largest)),
        Err(status) => status.into(),
    }
}

/// The caller's deadline. Messages that are compressed cannot be read.
fn deadline_of(headers: &HeaderMap) -> Result<Option<Instant>, Status> {
    match headers.get(&GRPC_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let mut status = Status::unimplemented(format!(
                "grpc-encoding is {encoding:?}: messages are not compressed here, because they are small"
            ));
            status
                .metadata_mut()
                .insert("grpc-accept-encoding", tonic::metadata::MetadataValue::from_static("identity"));
            Err(status)
        }
        _ => Ok(deadline::of(headers)),
    }
}
