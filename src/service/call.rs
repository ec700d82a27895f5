//! One call: its context, and its end, which may be there at once.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::Body;
use tonic::Status;

use super::{Reply, deadline};
use crate::deadlines::Deadlines;

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// The end of a call. It is boxed only where it has to be waited for.
pub enum Call {
    /// It is there.
    Done(Option<http::Response<Reply>>),
    /// It will come.
    Waiting(Pin<Box<dyn Future<Output = http::Response<Reply>> + Send>>),
}

/// A body that callers send.
pub trait Sent: Body<Data = Bytes> + Send + Unpin + 'static {}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Sent for B {}

impl Call {
    pub(super) fn done(ended: Result<http::Response<Reply>, Status>) -> Self {
        Self::Done(Some(ended.unwrap_or_else(Status::into_http)))
    }

    /// A call that has failed.
    pub fn failed(status: Status) -> Self {
        Self::done(Err(status))
    }

    /// What `serve` ends with, but no later than at the deadline that the request names.
    pub fn until_deadline<B, F>(request: http::Request<B>, serve: impl FnOnce(http::Request<B>) -> F) -> Self
    where
        F: Future<Output = Result<http::Response<Reply>, Status>> + Send + 'static,
    {
        let deadline = deadline::of(request.headers());
        let future = serve(request);
        Self::Waiting(Box::pin(async move {
            let ended = match deadline {
                None => future.await,
                Some(deadline) => {
                    let ended = tokio::time::timeout_at(deadline.into(), future).await;
                    ended.unwrap_or_else(|_| Err(deadline::passed()))
                }
            };
            ended.unwrap_or_else(Status::into_http)
        }))
    }

    /// The end of `future`, but no later than at the caller's deadline.
    pub(super) fn waiting(
        deadlines: &Deadlines,
        deadline: Option<Instant>,
        future: impl Future<Output = Result<http::Response<Reply>, Status>> + Send + 'static,
    ) -> Self {
        let deadline = deadline.map(|deadline| (deadline, deadlines.clone()));
        Self::Waiting(Box::pin(async move {
            let ended = match deadline {
                None => future.await,
                Some((deadline, deadlines)) => {
                    let ended = deadlines.until(deadline, future).await;
                    ended.unwrap_or_else(|_| Err(deadline::passed()))
                }
            };
            ended.unwrap_or_else(Status::into_http)
        }))
    }
}

impl Future for Call {
    type Output = Result<http::Response<Reply>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(response) => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
            Self::Waiting(future) => future.as_mut().poll(context).map(Ok),
        }
    }
}

/// The caller's deadline, if the call can be read at all: messages that are compressed cannot.
pub(super) fn deadline_of(headers: &HeaderMap) -> Result<Option<Instant>, Status> {
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
