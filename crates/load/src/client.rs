//! Client for single questions of the commands.

/// Defines calls with the client's timeout, each by its message, its answer and the method of its stub. Of an answer
/// with a named field, the field alone is returned.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($request:ty) -> $answer:ty = $stub:ident.$method:ident $(, $field:ident)?;)*) => {
        impl $crate::client::Client {
            $($(#[$doc])*
            pub async fn $name(&mut self, request: $request) -> Result<$answer, $crate::client::ClientError> {
                let request = $crate::client::within(self.timeout, request);
                let answer = tokio::time::timeout(self.timeout, self.$stub().$method(request)).await;
                let answer = self.answered(answer)?;
                $(let answer = answer.$field.unwrap_or_default();)?
                Ok(answer)
            })*
        }
    };
}

mod channel;
mod control;
mod envoy;
mod leases;
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
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    CancelReservationRequest, CancelReservationResponse, CountRequest, CountResponse, DebitRequest,
    DebitResponse, RefundRequest, RefundResponse, ReserveRequest, ReserveResponse, ResetRequest,
    ResetResponse, SettleRequest, SettleResponse, ShouldAllowRequest, ShouldAllowResponse,
};

/// A connection to a server.
pub struct Client {
    /// Channel of the stubs, which are made for each call.
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
        Ok(Self { channel, timeout })
    }

    fn decisions(&self) -> RateLimitServiceClient<AccessChannel> {
        RateLimitServiceClient::new(self.channel.clone())
    }

    fn admin(&self) -> AdminServiceClient<AccessChannel> {
        AdminServiceClient::new(self.channel.clone())
    }

    /// Returns whether a service is ready; `None` if the server does not have it.
    pub async fn health(&mut self, service: &str) -> Result<Option<bool>, ClientError> {
        let request = within(self.timeout, HealthCheckRequest { service: service.to_owned() });
        let answer =
            tokio::time::timeout(self.timeout, HealthClient::new(self.channel.clone()).check(request)).await;
        if let Ok(Err(status)) = &answer
            && status.code() == Code::NotFound
        {
            return Ok(None);
        }
        self.answered(answer).map(|response| Some(response.status() == ServingStatus::Serving))
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

calls! {
    /// Asks one question.
    should_allow(ShouldAllowRequest) -> ShouldAllowResponse = decisions.should_allow;
    /// Reserves a call.
    reserve(ReserveRequest) -> ReserveResponse = decisions.reserve;
    /// Charges actual use.
    debit(DebitRequest) -> DebitResponse = decisions.debit;
    /// Settles a held call.
    settle(SettleRequest) -> SettleResponse = decisions.settle;
    /// Gives a cost back.
    refund(RefundRequest) -> RefundResponse = decisions.refund;
    /// Cancels a reservation.
    cancel(CancelReservationRequest) -> CancelReservationResponse = decisions.cancel_reservation;
    /// Counts recent use.
    count(CountRequest) -> CountResponse = decisions.count;
    /// Resets limits to their full quota.
    reset(ResetRequest) -> ResetResponse = admin.reset;
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
