//! Responses end at their caller's deadline even after they have begun. Otherwise a watch would never end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::timeout_at;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Response};
use weir_grpc::deadline_exceeded;

use weir_time::deadlines::{Deadline, Deadlines};

/// Returns the response of a service, or DEADLINE_EXCEEDED at the deadline. A body that has begun ends with the
/// same status.
pub(super) async fn until_deadline(
    response: impl Future<Output = Response<Body>>,
    deadlines: &Deadlines,
    deadline: Option<Instant>,
) -> Response<Body> {
    let Some(deadline) = deadline else { return response.await };
    // Polled before tonic's own timer, which would end the call with CANCELLED.
    let Ok(response) = timeout_at(deadline.into(), response).await else {
        return deadline_exceeded().into_http();
    };
    let deadline = Some(deadlines.at(deadline));
    response.map(|body| Body::new(BodyUntilDeadline { body, deadline }))
}

/// A body with a deadline.
struct BodyUntilDeadline {
    body: Body,
    /// `None` once the body has ended.
    deadline: Option<Deadline>,
}

impl http_body::Body for BodyUntilDeadline {
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
            // This could fail only for metadata, and the status has none.
            let _ = deadline_exceeded().add_header(&mut trailers);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.deadline.is_none() || self.body.is_end_stream()
    }
}
