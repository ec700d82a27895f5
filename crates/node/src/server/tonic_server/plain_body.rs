//! The body of a gzip request, inflated. tonic's own decoder would not count the inflated messages in the buffer
//! budget.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;
use weir_grpc::Inflater;

use super::request_body::CountedBody;

/// A request body of inflated messages.
pub(super) struct PlainBody {
    body: CountedBody,
    inflater: Inflater,
}

impl PlainBody {
    /// Inflates `body` with `inflater`; without one the body stays as it is.
    pub(super) fn of(body: CountedBody, inflater: Option<Inflater>) -> Body {
        match inflater {
            Some(inflater) => Body::new(Self { body, inflater }),
            None => Body::new(body),
        }
    }
}

impl http_body::Body for PlainBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(next) = self.inflater.next_message() {
                return Poll::Ready(Some(next.map(|(message, _)| Frame::data(message))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()? {
                Some(frame) => match frame.into_data() {
                    Ok(bytes) => self.inflater.push(&bytes),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                None if self.inflater.is_between_messages() => return Poll::Ready(None),
                None => {
                    return Poll::Ready(Some(Err(Status::internal("the call ended within a message"))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inflater.is_between_messages() && self.body.is_end_stream()
    }
}
