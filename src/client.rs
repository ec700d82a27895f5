//! A client for one question at a time: what `weir allow` asks with.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::proto::v1::rate_limit_service_client::RateLimitServiceClient;
use crate::proto::v1::{ShouldAllowRequest, ShouldAllowResponse};

/// A connection to a server.
pub struct Client {
    inner: RateLimitServiceClient<Channel>,
    timeout: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is no URL.
    #[error("`{server}` is not the address of a server; expected http://HOST:PORT")]
    Address {
        /// What was given.
        server: String,
    },
    /// Nobody listens there.
    #[error("no server can be reached at {server}: {reason}")]
    Unreachable {
        /// Where.
        server: String,
        /// Why.
        reason: String,
    },
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server answered with an error.
    #[error("{code}: {message}")]
    Refused {
        /// The name of the gRPC status code, `NOT_FOUND` for example.
        code: &'static str,
        /// What the server says.
        message: String,
    },
}

impl Client {
    /// Connects to `server`, an `http://HOST:PORT`; no call takes longer than `timeout`.
    pub async fn connect(server: &str, timeout: Duration) -> Result<Self, ClientError> {
        let address = || ClientError::Address { server: server.to_owned() };
        let endpoint = Endpoint::from_shared(server.to_owned()).map_err(|_| address())?;
        if endpoint.uri().scheme_str() != Some("http") || endpoint.uri().host().is_none() {
            return Err(address());
        }
        let channel = endpoint.connect_timeout(timeout).connect().await.map_err(|error| {
            ClientError::Unreachable { server: server.to_owned(), reason: innermost(&error) }
        })?;
        Ok(Self { inner: RateLimitServiceClient::new(channel), timeout })
    }

    /// Asks one question.
    pub async fn should_allow(
        &mut self,
        request: ShouldAllowRequest,
    ) -> Result<ShouldAllowResponse, ClientError> {
        let mut request = Request::new(request);
        request.set_timeout(self.timeout);
        match tokio::time::timeout(self.timeout, self.inner.should_allow(request)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.refused(&status)),
            Err(_) => Err(ClientError::Timeout(self.timeout)),
        }
    }

    fn refused(&self, status: &Status) -> ClientError {
        match status.code() {
            Code::Cancelled | Code::DeadlineExceeded => ClientError::Timeout(self.timeout),
            code => ClientError::Refused { code: name(code), message: status.message().to_owned() },
        }
    }
}

/// The cause that says most: the last of the chain.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// The name of a gRPC status code as the specification spells it; of unknown numbers `UNKNOWN`.
#[must_use]
pub const fn code_name(code: i32) -> &'static str {
    name(Code::from_i32(code))
}

/// The code as the gRPC specification spells it.
const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
