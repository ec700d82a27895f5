//! What a call is answered with: the body of an HTTP/2 response, written without a box where there is
//! one message.

use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

use super::messages::PREFIX;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// What the answer to every call begins with, and what ends one that went well. A map is copied for less than
/// it is made for.
static HEAD: LazyLock<HeaderMap> = LazyLock::new(|| HeaderMap::from_iter([(CONTENT_TYPE, GRPC)]));
static TRAILERS: LazyLock<HeaderMap> = LazyLock::new(|| HeaderMap::from_iter([(GRPC_STATUS, OK)]));

/// An answer of one message with its prefix, to a call that went well.
pub struct Whole(pub Bytes);

impl Whole {
    /// What comes before it.
    #[must_use]
    pub fn head() -> http::Response<()> {
        let mut head = http::Response::new(());
        *head.headers_mut() = HEAD.clone();
        head
    }

    /// What comes after it.
    #[must_use]
    pub fn trailers() -> HeaderMap {
        TRAILERS.clone()
    }
}

/// The body of a response.
#[derive(Default)]
pub struct Reply(Kind);

#[derive(Default)]
enum Kind {
    /// Nothing; also what is left when all has been said.
    #[default]
    Nothing,
    /// One message, and that all went well.
    Message(Bytes),
    /// That all went well.
    Trailers,
    /// As many messages as are asked for, and how it ended.
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = Status> + Send>>),
    /// Of a service that tonic serves.
    Other(tonic::body::Body),
}

impl Reply {
    /// A response of one message: what `write` appends.
    pub(super) fn message(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> http::Response<Self> {
        with_headers(Kind::Message(framed(capacity, write)))
    }

    /// A response of many messages.
    pub(super) fn stream(
        messages: impl Body<Data = Bytes, Error = Status> + Send + 'static,
    ) -> http::Response<Self> {
        with_headers(Kind::Stream(Box::pin(messages)))
    }

    /// All of it, where it is one message that went well.
    pub fn whole(self) -> Result<Whole, Self> {
        match self.0 {
            Kind::Message(message) => Ok(Whole(message)),
            other => Err(Self(other)),
        }
    }

    /// What tonic answers.
    pub fn other(body: tonic::body::Body) -> Self {
        Self(Kind::Other(body))
    }
}

fn with_headers(kind: Kind) -> http::Response<Reply> {
    let mut response = http::Response::new(Reply(kind));
    *response.headers_mut() = HEAD.clone();
    response
}

/// What `write` appends as a message with its prefix.
pub(super) fn framed(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::with_capacity(PREFIX + capacity);
    frame(&mut out, write);
    out.into()
}

/// Appends what `write` appends as a message with its prefix.
pub(super) fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    write(out);
    // No answer comes near four gigabytes.
    let length = u32::try_from(out.len() - start - PREFIX).unwrap_or(u32::MAX);
    out[start + 1..start + PREFIX].copy_from_slice(&length.to_be_bytes());
}

/// The same, but nothing where `write` appends nothing.
pub(super) fn framed_if_any(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Option<Bytes> {
    let message = framed(capacity, write);
    (message.len() > PREFIX).then_some(message)
}

/// The trailers of a call that went well.
pub(super) fn ok() -> HeaderMap {
    Whole::trailers()
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let (said, next) = match &mut self.0 {
            Kind::Nothing => return Poll::Ready(None),
            Kind::Message(message) => (Frame::data(std::mem::take(message)), Kind::Trailers),
            Kind::Trailers => (Frame::trailers(ok()), Kind::Nothing),
            Kind::Stream(stream) => return stream.as_mut().poll_frame(context),
            Kind::Other(body) => return Pin::new(body).poll_frame(context),
        };
        self.0 = next;
        Poll::Ready(Some(Ok(said)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Nothing => true,
            Kind::Message(_) | Kind::Trailers => false,
            Kind::Stream(stream) => stream.is_end_stream(),
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Other(body) => body.size_hint(),
            _ => SizeHint::new(),
        }
    }
}
