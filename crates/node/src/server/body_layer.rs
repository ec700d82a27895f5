//! Bodies around bodies, for what tonic's server has no interface for. The layers of a call are independent.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;

/// The next frame of a body, if it has one.
pub(super) type PolledFrame = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A layer around a body. It lives as long as the body. By itself it changes nothing.
pub(super) trait BodyLayer: Send + Unpin + Sized + 'static {
    /// Polls for the next frame that the reader gets.
    fn poll_frame(&mut self, body: Pin<&mut Body>, context: &mut Context<'_>) -> PolledFrame {
        http_body::Body::poll_frame(body, context)
    }

    /// True if the reader will get no further frame.
    fn is_end_stream(&self, body: &Body) -> bool {
        http_body::Body::is_end_stream(body)
    }

    fn around(self, body: Body) -> Body {
        Body::new(LayeredBody { body, layer: self })
    }
}

struct LayeredBody<L> {
    body: Body,
    layer: L,
}

impl<L: BodyLayer> http_body::Body for LayeredBody<L> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        let Self { body, layer } = &mut *self;
        layer.poll_frame(Pin::new(body), context)
    }

    fn is_end_stream(&self) -> bool {
        self.layer.is_end_stream(&self.body)
    }
}
