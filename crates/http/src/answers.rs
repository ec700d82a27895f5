//! Answers: their bodies and headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::{
    ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use weir_node::feature::CallError;

use crate::codes::{UNAUTHENTICATED, UNAVAILABLE, code};

/// An answer of the listener.
pub(crate) type HttpAnswer = Response<Full<Bytes>>;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Returns an answer with this body.
pub(crate) fn body(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> HttpAnswer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    answer
}

/// Returns an answer with one sentence.
pub(crate) fn text(status: StatusCode, sentence: &str) -> HttpAnswer {
    body(status, TEXT, format!("{sentence}\n"))
}

/// Returns the same with a header.
pub(crate) fn with(mut answer: HttpAnswer, name: HeaderName, value: &'static str) -> HttpAnswer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}

/// Returns the answer to a method that a path does not have.
pub(crate) fn only(method: &'static str) -> HttpAnswer {
    with(text(StatusCode::METHOD_NOT_ALLOWED, &format!("only {method} is served here")), ALLOW, method)
}

/// Returns the answer of a call that failed, in Connect's form.
pub(crate) fn error(error: &CallError) -> HttpAnswer {
    let (name, status) = code(error.code);
    let mut fields = json!({ "code": name });
    if !error.message.is_empty() {
        fields["message"] = json!(error.message);
    }
    if !error.details.is_empty() {
        let detail = |detail: &weir_node::feature::CallErrorDetail| json!({ "type": detail.name, "value": STANDARD_NO_PAD.encode(&detail.message) });
        fields["details"] = Value::Array(error.details.iter().map(detail).collect());
    }
    let answer = body(status, JSON, fields.to_string());
    match error.code {
        UNAVAILABLE => with(answer, RETRY_AFTER, "1"),
        UNAUTHENTICATED => with(answer, WWW_AUTHENTICATE, "Bearer"),
        _ => answer,
    }
}

/// Returns an error without details.
pub(crate) fn call_error(code: u8, message: impl Into<String>) -> CallError {
    CallError { code, message: message.into(), details: Vec::new() }
}
