//! Metadata of answers: headers beside a message, and trailers, which unary calls send as headers with a prefix.
//!
//! Weir's own methods have none. The program that the conformance suite runs has, behind the same layer.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use weir_node::feature::CallError;

use crate::answers::HttpAnswer;

/// The prefix of trailers.
const TRAILER: &str = "trailer-";

/// Metadata of one answer. A name may have several values.
#[derive(Debug, Clone, Default)]
pub struct AnswerMetadata {
    /// Sent as headers of the same name.
    pub leading: HeaderMap,
    /// Sent as headers with the prefix `Trailer-`.
    pub trailing: HeaderMap,
}

/// The answer of a call, with its metadata.
pub type AnswerWithMetadata = (Result<Bytes, CallError>, AnswerMetadata);

/// Calls whose answers have metadata.
pub trait MetadataCalls: Send + Sync {
    /// Makes a call of a unary method with the headers of its request.
    fn call(
        &self,
        method: &'static str,
        headers: HeaderMap,
        deadline: Option<Instant>,
        message: Bytes,
    ) -> Pin<Box<dyn Future<Output = AnswerWithMetadata> + Send>>;
}

impl AnswerMetadata {
    /// Adds the metadata to the headers of an answer.
    pub(crate) fn add_to(&self, answer: &mut HttpAnswer) {
        append(answer.headers_mut(), &self.leading, Some);
        append(answer.headers_mut(), &self.trailing, |name| {
            HeaderName::from_bytes(format!("{TRAILER}{name}").as_bytes()).ok()
        });
    }
}

fn append(
    headers: &mut HeaderMap<HeaderValue>,
    more: &HeaderMap,
    named: impl Fn(HeaderName) -> Option<HeaderName>,
) {
    for (name, value) in more {
        if let Some(name) = named(name.clone()) {
            headers.append(name, value.clone());
        }
    }
}
