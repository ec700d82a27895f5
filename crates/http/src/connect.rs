//! Connect's unary protocol: the headers of a request, its body, and its answer.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Method, StatusCode};
use weir_node::feature::CallError;
use weir_time::clock::monotonic;

use crate::answers::{self, HttpAnswer, call_error};
use crate::codes::{
    DEADLINE_EXCEEDED, INTERNAL, INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE,
    UNIMPLEMENTED,
};
use crate::json::{MethodShape, ProtoShapes, UnknownFields};

const VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
const TYPES: &str = "application/json, application/proto";
const PROTO: HeaderValue = HeaderValue::from_static("application/proto");

/// The longest timeout has ten digits.
const MAX_TIMEOUT_DIGITS: usize = 10;

/// The form of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageForm {
    Json,
    Proto,
}

/// The headers of a request.
#[derive(Debug)]
pub(crate) struct CallHead {
    pub(crate) form: MessageForm,
    pub(crate) unknown: UnknownFields,
    pub(crate) deadline: Option<Instant>,
}

/// Reads the headers of a request to a method, or returns the answer that refuses it.
pub(crate) fn head(method: &Method, headers: &HeaderMap) -> Result<CallHead, Box<HttpAnswer>> {
    if method != Method::POST {
        return Err(Box::new(answers::only("POST")));
    }
    if headers.contains_key(ORIGIN) {
        let message = "requests of pages in browsers are refused: they have `Origin`";
        return Err(Box::new(answers::error(&call_error(PERMISSION_DENIED, message))));
    }
    let form = form(headers).ok_or_else(|| {
        let refused =
            answers::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, &format!("Content-Type is one of {TYPES}"));
        Box::new(answers::with(refused, ACCEPT_POST, TYPES))
    })?;
    protocol(headers, form).map_err(|error| Box::new(answers::error(&error)))
}

fn protocol(headers: &HeaderMap, form: MessageForm) -> Result<CallHead, CallError> {
    let version = headers.get(VERSION);
    if version.is_some_and(|version| version != "1") {
        return Err(call_error(INVALID_ARGUMENT, "Connect-Protocol-Version: only 1 is known"));
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(call_error(UNIMPLEMENTED, "Content-Encoding: only identity is served"));
    }
    let unknown = if version.is_some() { UnknownFields::Ignore } else { UnknownFields::Refuse };
    Ok(CallHead { form, unknown, deadline: deadline(headers)? })
}

/// Returns the form that the content type names.
fn form(headers: &HeaderMap) -> Option<MessageForm> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    // As most clients write it.
    if value == "application/json" {
        return Some(MessageForm::Json);
    }
    let value = value.to_str().ok()?;
    let (media, parameters) = value.split_once(';').unwrap_or((value, ""));
    let parameters = parameters.trim();
    match media.trim().to_ascii_lowercase().as_str() {
        "application/json" if parameters.is_empty() => Some(MessageForm::Json),
        "application/json" => {
            let charset = parameters.split_once('=').filter(|(name, _)| name.eq_ignore_ascii_case("charset"));
            let is_utf_8 = |(_, value): &(&str, &str)| value.trim_matches('"').eq_ignore_ascii_case("utf-8");
            charset.filter(is_utf_8).map(|_| MessageForm::Json)
        }
        "application/proto" if parameters.is_empty() => Some(MessageForm::Proto),
        _ => None,
    }
}

fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, CallError> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(None) };
    let digits = value.as_bytes();
    let is_plain = (1..=MAX_TIMEOUT_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let millis = value.to_str().ok().filter(|_| is_plain).and_then(|text| text.parse().ok());
    match millis {
        None => Err(call_error(INVALID_ARGUMENT, "Connect-Timeout-Ms: 1 to 10 digits are milliseconds")),
        Some(0) => Err(call_error(DEADLINE_EXCEEDED, "Connect-Timeout-Ms: 0 has passed already")),
        Some(millis) => Ok(monotonic().checked_add(Duration::from_millis(millis))),
    }
}

/// Returns the message of a request, as the bytes that gRPC has.
pub(crate) fn message(
    shapes: &ProtoShapes,
    method: &MethodShape,
    head: &CallHead,
    body: Bytes,
) -> Result<Bytes, CallError> {
    match head.form {
        MessageForm::Proto => Ok(body),
        MessageForm::Json => shapes
            .read(method, &body, head.unknown)
            .map(Bytes::from)
            .map_err(|mistake| call_error(INVALID_ARGUMENT, format!("the body: {mistake}"))),
    }
}

/// Returns the answer of a call.
pub(crate) fn answer(
    shapes: &ProtoShapes,
    method: &MethodShape,
    form: MessageForm,
    answered: Result<Bytes, CallError>,
) -> HttpAnswer {
    let written = answered.and_then(|message| match form {
        MessageForm::Proto => Ok((PROTO, message)),
        MessageForm::Json => {
            shapes.write(method, &message).map(|json| (answers::JSON, Bytes::from(json))).map_err(|_| {
                call_error(INTERNAL, "the answer cannot be written as JSON; ask for application/proto")
            })
        }
    });
    match written {
        Ok((content_type, bytes)) => answers::body(StatusCode::OK, content_type, bytes),
        Err(error) => answers::error(&error),
    }
}

/// Callers take 429 for a denial, so what has no room is unavailable.
pub(crate) fn unavailable(error: CallError) -> CallError {
    let code = if error.code == RESOURCE_EXHAUSTED { UNAVAILABLE } else { error.code };
    CallError { code, ..error }
}

/// Returns the error of a body above its bound.
pub(crate) fn too_large(largest: usize) -> CallError {
    call_error(RESOURCE_EXHAUSTED, format!("the body has more than {largest} bytes"))
}
