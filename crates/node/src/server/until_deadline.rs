//! Responses end at their caller's deadline even after they have begun. Otherwise a watch would never end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http_body::Frame;
use tokio::time::timeout_at;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Response};
use weir_grpc::deadline_exceeded;

use super::body_layer::{BodyLayer, PolledFrame};
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
    response.map(|body| UntilDeadline { deadline }.around(body))
}

struct UntilDeadline {
    /// `None` once the body has ended.
    deadline: Option<Deadline>,
}

impl BodyLayer for UntilDeadline {
    fn poll_frame(&mut self, body: Pin<&mut Body>, context: &mut Context<'_>) -> PolledFrame {
        let Some(deadline) = &mut self.deadline else { return Poll::Ready(None) };
        if deadline.poll_passed(context).is_ready() {
            self.deadline = None;
            let mut trailers = HeaderMap::new();
            // This could fail only for metadata, and the status has none.
            let _ = deadline_exceeded().add_header(&mut trailers);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        http_body::Body::poll_frame(body, context)
    }

    fn is_end_stream(&self, body: &Body) -> bool {
        self.deadline.is_none() || http_body::Body::is_end_stream(body)
    }
}
