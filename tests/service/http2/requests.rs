//! Requests as bytes: header blocks that depend on nothing, bodies, and whole calls.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fluke_hpack::encoder::encode_integer;
use prost::Message as _;
use weir_proto::v1::{
    ShouldAllowBatchRequest, ShouldAllowRequest, ShouldAllowStreamRequest, StreamedRequest,
};

use crate::support::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, frame};
use crate::support::grpc::framed;
use crate::support::server::ask_under;

pub(super) const ONE: &str = "/weir.v1.RateLimitService/ShouldAllow";
pub(super) const BATCH: &str = "/weir.v1.RateLimitService/ShouldAllowBatch";
pub(super) const STREAM: &str = "/weir.v1.RateLimitService/ShouldAllowStream";

pub(super) type Field<'a> = (&'a str, &'a str);

/// The headers of a call.
pub(super) fn fields(path: &str) -> Vec<Field<'_>> {
    let ends = [("content-type", "application/grpc"), ("te", "trailers")];
    let begins = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "weir")];
    [&begins[..], &ends].concat()
}

/// Each a literal that enters no table, in no code.
pub(super) fn plain(fields: &[Field<'_>]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| literal(name.as_bytes(), value.as_bytes())).collect()
}

pub(super) fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0][..], &text(name), &text(value)].concat()
}

/// A string without Huffman's code.
pub(super) fn text(bytes: &[u8]) -> Vec<u8> {
    [&encode_integer(bytes.len(), 7)[..], bytes].concat()
}

/// A block as one frame.
pub(super) fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, block)
}

/// The headers of a call whose body follows.
pub(super) fn head(stream: u32, path: &str) -> Vec<u8> {
    headers(stream, 0, &plain(&fields(path)))
}

/// The rest of the body.
pub(super) fn body(stream: u32, bytes: &[u8]) -> Vec<u8> {
    let whole = bytes.len() / 16_384 * 16_384;
    [data(stream, &bytes[..whole]), frame(DATA, END_STREAM, stream, &bytes[whole..])].concat()
}

/// A part of the body, in as few frames as can be.
pub(super) fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(16_384).flat_map(|piece| frame(DATA, 0, stream, piece)).collect()
}

/// A whole call that is allowed.
pub(super) fn call(stream: u32) -> Vec<u8> {
    [head(stream, ONE), body(stream, &question())].concat()
}

/// A question that is allowed, because its limit is unused.
pub(super) fn question() -> Vec<u8> {
    framed(0, &new_ask().encode_to_vec())
}

/// A message with so many of them.
pub(super) fn questions(count: usize) -> Vec<u8> {
    let requests = (0..count).map(|_| new_ask()).collect();
    framed(0, &ShouldAllowBatchRequest { requests }.encode_to_vec())
}

/// A message of a stream, likewise.
pub(super) fn streamed(count: u64) -> Vec<u8> {
    let request = |id| StreamedRequest { id, request: Some(new_ask()) };
    framed(0, &ShouldAllowStreamRequest { requests: (0..count).map(request).collect() }.encode_to_vec())
}

fn new_ask() -> ShouldAllowRequest {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    ask_under("open", "http2", &format!("{:020}", NEXT.fetch_add(1, Relaxed)))
}
