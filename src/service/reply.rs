//! What a call is answered with.

use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use tonic::Status;

use super::messages::PREFIX;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// The answer to a call that went well, at least at first.
pub enum Reply {
    /// One message with its prefix, and that all went well.
    Message(Bytes),
    /// As many messages as are asked for, and trailers that say how it ended.
    Messages(Poured),
    /// Of a service that tonic serves.
    Other(Box<http::Response<tonic::body::Body>>),
}

/// An answer that comes piece by piece.
pub type Poured = Pin<Box<dyn Body<Data = Bytes, Error = Status> + Send>>;

impl Reply {
    /// One message: what `write` appends.
    pub(super) fn message(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::Message(framed(capacity, write))
    }
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
    HeaderMap::from_iter([(GRPC_STATUS, OK)])
}
