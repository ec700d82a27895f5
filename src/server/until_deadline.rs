//! A response body that ends at its caller's deadline: a watch would go on for ever otherwise.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tonic::Status;
use tonic::codegen::http::HeaderMap;
use weir_grpc::deadline_exceeded;

use crate::deadlines::Deadline;

/// A body with a deadline.
pub(super) struct UntilDeadline {
    body: tonic::body::Body,
    /// Gone once the body has ended.
    deadline: Option<Deadline>,
}

impl UntilDeadline {
    pub(super) const fn new(body: tonic::body::Body, deadline: Deadline) -> Self {
        Self { body, deadline: Some(deadline) }
    }
}

impl Body for UntilDeadline {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Ready(None) };
        if deadline.poll_passed(context).is_ready() {
            self.deadline = None;
            let mut trailers = HeaderMap::new();
            // Only metadata could be refused, and there is none.
            let _ = deadline_exceeded().add_header(&mut trailers);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.deadline.is_none() || self.body.is_end_stream()
    }
}
