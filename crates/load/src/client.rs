//! Client for single questions of the commands.

mod channel;
mod control;
mod leases;
mod operators;
mod queues;
mod usage;

use std::time::Duration;

use tokio::time::error::Elapsed;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Response, Status};

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use self::channel::AccessChannel;
use crate::access::ServerAccess;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient as EnvoyClient;
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    CancelReservationRequest, CancelReservationResponse, CountRequest, CountResponse, DebitRequest,
    DebitResponse, RefundRequest, RefundResponse, ReserveRequest, ReserveResponse, SettleRequest,
    SettleResponse, ShouldAllowRequest, ShouldAllowResponse,
};

/// A connection to a server.
pub struct Client {
    inner: RateLimitServiceClient<AccessChannel>,
    envoy: EnvoyClient<AccessChannel>,
    admin: AdminServiceClient<AccessChannel>,
    health: HealthClient<AccessChannel>,
    /// Channel of the features' clients, which are made for each call.
    channel: AccessChannel,
    timeout: Duration,
}

/// Errors of the client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is no URL.
    #[error(
        "`{server}` is not the address of a server; expected HOST:PORT, http://HOST:PORT or https://HOST:PORT"
    )]
    Address {
        /// The given address.
        server: String,
    },
    /// The connection was refused.
    #[error("no server can be reached at {server}: {reason}")]
    Unreachable {
        /// Address of the server.
        server: String,
        /// Reason of the failure.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server answered with an error.
    #[error("{code}: {message}")]
    Refused {
        /// The name of the gRPC status code, `NOT_FOUND` for example.
        code: &'static str,
        /// The server's message.
        message: String,
    },
}

impl Client {
    /// Connects to `server`, a `HOST:PORT`, `http://HOST:PORT` or `unix:PATH`; no call takes longer than `timeout`.
    /// An invalid path is unreachable; `weir_config::unix_path` gives the reason.
    pub async fn connect(server: &str, timeout: Duration) -> Result<Self, ClientError> {
        Self::connect_with(server, &ServerAccess::default(), timeout).await
    }

    /// Connects with TLS, which `https://HOST:PORT` needs, or with a token.
    pub async fn connect_with(
        server: &str,
        access: &ServerAccess,
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let address = || ClientError::Address { server: server.to_owned() };
        let endpoint = endpoint(server, access).ok_or_else(address)?;
        let channel = channel::connect(endpoint.connect_timeout(timeout), access).await;
        let channel = channel.map_err(|error| ClientError::Unreachable {
            server: server.to_owned(),
            reason: innermost(&error),
        })?;
        let admin = AdminServiceClient::new(channel.clone());
        let health = HealthClient::new(channel.clone());
        let (inner, envoy) =
            (RateLimitServiceClient::new(channel.clone()), EnvoyClient::new(channel.clone()));
        Ok(Self { inner, envoy, channel, admin, health, timeout })
    }

    /// Asks one question.
    pub async fn should_allow(
        &mut self,
        request: ShouldAllowRequest,
    ) -> Result<ShouldAllowResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.should_allow(request)).await;
        self.answered(answer)
    }

    /// Reserves a call.
    pub async fn reserve(&mut self, request: ReserveRequest) -> Result<ReserveResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.reserve(request)).await;
        self.answered(answer)
    }

    /// Charges actual use.
    pub async fn debit(&mut self, request: DebitRequest) -> Result<DebitResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.debit(request)).await;
        self.answered(answer)
    }

    /// Settles a held call.
    pub async fn settle(&mut self, request: SettleRequest) -> Result<SettleResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.settle(request)).await;
        self.answered(answer)
    }

    /// Gives a cost back.
    pub async fn refund(&mut self, request: RefundRequest) -> Result<RefundResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.refund(request)).await;
        self.answered(answer)
    }

    /// Cancels a reservation.
    pub async fn cancel(
        &mut self,
        request: CancelReservationRequest,
    ) -> Result<CancelReservationResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.cancel_reservation(request)).await;
        self.answered(answer)
    }

    /// Counts recent use.
    pub async fn count(&mut self, request: CountRequest) -> Result<CountResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.inner.count(request)).await;
        self.answered(answer)
    }

    /// Returns whether a service is ready; `None` if the server does not have it.
    pub async fn health(&mut self, service: &str) -> Result<Option<bool>, ClientError> {
        let request = within(self.timeout, HealthCheckRequest { service: service.to_owned() });
        let answer = tokio::time::timeout(self.timeout, self.health.check(request)).await;
        if let Ok(Err(status)) = &answer
            && status.code() == Code::NotFound
        {
            return Ok(None);
        }
        self.answered(answer).map(|response| Some(response.status() == ServingStatus::Serving))
    }

    /// Asks one question as Envoy does.
    pub async fn should_rate_limit(
        &mut self,
        request: RateLimitRequest,
    ) -> Result<RateLimitResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.envoy.should_rate_limit(request)).await;
        self.answered(answer)
    }

    fn answered<T>(&self, answer: Result<Result<Response<T>, Status>, Elapsed>) -> Result<T, ClientError> {
        match answer {
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

/// Parses an address. With TLS its calls say `https`, but tonic connects to an address in `http:`.
fn endpoint(server: &str, access: &ServerAccess) -> Option<Endpoint> {
    let is_unix = server.starts_with("unix:");
    let plain = match server.strip_prefix("https://") {
        Some(rest) if access.tls.is_some() => format!("http://{rest}"),
        _ if is_unix || server.contains("://") => server.to_owned(),
        _ => format!("http://{server}"),
    };
    let endpoint = Endpoint::from_shared(plain).ok()?;
    let uri = endpoint.uri();
    let is_tcp = uri.scheme_str() == Some("http") && uri.port().is_some() && matches!(uri.path(), "" | "/");
    if !is_tcp && !is_unix {
        return None;
    }
    match access.tls {
        Some(_) => Some(endpoint.origin(server.parse().ok()?)),
        None => Some(endpoint),
    }
}

/// The request with a deadline, which the server gets too.
fn within<T>(timeout: Duration, request: T) -> Request<T> {
    let mut request = Request::new(request);
    request.set_timeout(timeout);
    request
}

/// The most specific cause: the last of the chain.
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

/// The number of a status code as Connect spells it: in lower case, and `canceled` with one l.
pub(super) fn code_number(name: &str) -> Option<i32> {
    let is_canceled = name == "canceled";
    (1..=16).find(|code| (is_canceled && *code == 1) || code_name(*code).eq_ignore_ascii_case(name))
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
