//! The responses of calls, and the framing of their messages.

use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use tonic::Status;

use crate::framing::PREFIX;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// The response to a call that has not failed, or not yet.
pub enum Reply {
    /// One message with its prefix, and grpc-status 0.
    Message(Bytes),
    /// A stream of messages with their prefixes, and trailers.
    Messages(ResponseBody),
    /// The response of a general router.
    Other(Box<http::Response<tonic::body::Body>>),
}

/// The body of a streaming response.
pub type ResponseBody = Pin<Box<dyn Body<Data = Bytes, Error = Status> + Send>>;

impl Reply {
    /// Creates a response of one message, which `write` appends.
    pub fn message(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::Message(framed(capacity, write))
    }
}

/// Frames one message, which `write` appends.
pub fn framed(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::with_capacity(PREFIX + capacity);
    frame(&mut out, write);
    out.into()
}

/// Appends one framed message, which `write` appends.
pub fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    write(out);
    // No response comes near four gigabytes.
    let length = u32::try_from(out.len() - start - PREFIX).unwrap_or(u32::MAX);
    out[start + 1..start + PREFIX].copy_from_slice(&length.to_be_bytes());
}

/// Frames one message; `None` if `write` appends nothing.
pub fn framed_if_any(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Option<Bytes> {
    let message = framed(capacity, write);
    (message.len() > PREFIX).then_some(message)
}

/// Returns the trailers of a call that ended with grpc-status 0.
#[must_use]
pub fn ok() -> HeaderMap {
    HeaderMap::from_iter([(GRPC_STATUS, OK)])
}
