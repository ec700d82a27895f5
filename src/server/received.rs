//! What a caller sends, as the services read it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};

/// The body of a request. What has been read makes room for more to be sent.
pub(super) struct Received {
    stream: RecvStream,
    /// Whether all data has come, so that only trailers may follow.
    data_done: bool,
}

impl Received {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, data_done: false }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.data_done {
            match ready!(self.stream.poll_data(context)).transpose()? {
                Some(data) => {
                    // It fails only where the stream is gone, and then nobody sends any more.
                    let _ = self.stream.flow_control().release_capacity(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                None => self.data_done = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(context))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
