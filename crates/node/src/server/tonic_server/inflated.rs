//! The messages of a gzip request, inflated. tonic's own decoder would not count the inflated messages in the buffer
//! budget.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Frame;
use tonic::Status;
use tonic::body::Body;
use weir_grpc::Inflater;

use crate::server::body_layer::{BodyLayer, PolledFrame};

pub(super) struct InflatedMessages(pub(super) Inflater);

impl BodyLayer for InflatedMessages {
    fn poll_frame(&mut self, mut body: Pin<&mut Body>, context: &mut Context<'_>) -> PolledFrame {
        loop {
            if let Some(next) = self.0.next_message() {
                return Poll::Ready(Some(next.map(|(message, _)| Frame::data(message))));
            }
            match ready!(http_body::Body::poll_frame(body.as_mut(), context)).transpose()? {
                Some(frame) => match frame.into_data() {
                    Ok(bytes) => self.0.push(&bytes),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                None if self.0.is_between_messages() => return Poll::Ready(None),
                None => {
                    return Poll::Ready(Some(Err(Status::internal("the call ended within a message"))));
                }
            }
        }
    }

    fn is_end_stream(&self, body: &Body) -> bool {
        self.0.is_between_messages() && http_body::Body::is_end_stream(body)
    }
}
