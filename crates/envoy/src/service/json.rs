//! Envoy's requests in proto3 JSON: the same service, for callers over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use tonic::{Code, Request, Status};
use weir_grpc::{CallContext, Caller};
use weir_proto::Encoded;
use weir_proto::envoy::service::ratelimit::v3::RateLimitResponse;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code as Overall;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitService as _;

use super::json_message::{from_json, to_json};
use super::{EnvoyRateLimit, EnvoyService};

/// The service for requests in JSON.
pub struct EnvoyJson(EnvoyService);

/// An answer in JSON.
#[derive(Debug)]
pub struct JsonAnswer {
    /// True if the request is over a limit.
    pub is_over: bool,
    /// The answer.
    pub text: String,
}

/// Errors in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// The request is mistaken.
    Request(String),
    /// The service cannot answer now.
    Unavailable(String),
}

impl EnvoyJson {
    /// The service over `envoy`.
    #[must_use]
    pub fn new(envoy: &Arc<EnvoyRateLimit>) -> Self {
        Self(EnvoyService::new(envoy))
    }

    /// Answers one request.
    pub async fn answer(&self, text: &[u8], caller: Option<Caller>) -> Result<JsonAnswer, JsonError> {
        let message = from_json(text).map_err(JsonError::Request)?;
        let mut request = Request::new(Encoded::new(Bytes::from(message)));
        request.extensions_mut().insert(CallContext { deadline: None, caller });
        let answer = self.0.should_rate_limit(request).await.map_err(failure)?;
        let bytes = answer.into_inner().into_bytes();
        let broken = || JsonError::Unavailable("the answer cannot be written as JSON".to_owned());
        let read = RateLimitResponse::decode(bytes.clone()).map_err(|_| broken())?;
        let text = to_json(&bytes).ok_or_else(broken)?;
        Ok(JsonAnswer { is_over: read.overall_code() == Overall::OverLimit, text })
    }
}

fn failure(status: Status) -> JsonError {
    let reason = status.message().to_owned();
    match status.code() {
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::FailedPrecondition
        | Code::ResourceExhausted
        | Code::Internal => JsonError::Unavailable(reason),
        _ => JsonError::Request(reason),
    }
}
