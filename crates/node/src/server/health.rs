//! `grpc.health.v1`, from [`Readiness`].
//!
//! The empty name is this process: SERVING until shutdown, whatever the state of Redis, so that no orchestrator
//! restarts nodes because their store is down. The full name of each enabled service reports readiness, and so does
//! `ratelimit`, the name in the reference implementation of Envoy's service. A watch reports the drain at once and
//! ends when its connection does. Otherwise an open watch would delay the shutdown, and a watch that ended before
//! would be opened again and again.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use weir_proto::health::{HealthListRequest, HealthListResponse, health_server};
use weir_proto::v1::rate_limit_service_server::SERVICE_NAME;

use crate::readiness::{Readiness, State};

/// The implementation of the health service.
pub(super) struct HealthApi {
    readiness: Readiness,
    /// The full names of all enabled services.
    services: Vec<&'static str>,
}

/// The service name in the reference implementation of Envoy's service.
const REFERENCE: &str = "ratelimit";

/// The subject of a health check.
#[derive(Clone, Copy)]
enum HealthName {
    Process,
    Service,
    Unknown,
}

/// The status of one service: now, and at every change.
pub(super) struct HealthWatch {
    service: HealthName,
    states: WatchStream<State>,
    last: Option<ServingStatus>,
    over: bool,
}

impl HealthApi {
    /// Creates the service for these enabled services.
    pub(super) const fn new(readiness: Readiness, services: Vec<&'static str>) -> Self {
        Self { readiness, services }
    }

    fn named(&self, name: &str) -> HealthName {
        if name.is_empty() {
            HealthName::Process
        } else if name == REFERENCE || self.services.contains(&name) {
            HealthName::Service
        } else {
            HealthName::Unknown
        }
    }
}

#[tonic::async_trait]
impl health_server::Health for HealthApi {
    type WatchStream = HealthWatch;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.named(&request.get_ref().service) {
            HealthName::Unknown => Err(Status::not_found(format!(
                "service: there is no such service; ask for \"\" (alive) or \"{SERVICE_NAME}\" (ready), or List"
            ))),
            service => Ok(Response::new(response(service.status(&self.readiness.state())))),
        }
    }

    async fn list(&self, _: Request<HealthListRequest>) -> Result<Response<HealthListResponse>, Status> {
        let state = self.readiness.state();
        let names = self.services.iter().copied().chain(["", REFERENCE]);
        let statuses = names.map(|name| (name.to_owned(), response(self.named(name).status(&state))));
        Ok(Response::new(HealthListResponse { statuses: statuses.collect() }))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthWatch>, Status> {
        let service = self.named(&request.get_ref().service);
        let states = WatchStream::new(self.readiness.subscribe());
        Ok(Response::new(HealthWatch { service, states, last: None, over: false }))
    }
}

impl HealthName {
    fn status(self, state: &State) -> ServingStatus {
        match (self, state) {
            (Self::Unknown, _) => ServingStatus::ServiceUnknown,
            (_, State::Draining | State::Closing)
            | (Self::Service, State::NotReady(_) | State::WithoutStore(_)) => ServingStatus::NotServing,
            (_, State::Ready | State::Degraded(_))
            | (Self::Process, State::NotReady(_) | State::WithoutStore(_)) => ServingStatus::Serving,
        }
    }
}

impl Stream for HealthWatch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.over {
            let Some(state) = ready!(Pin::new(&mut self.states).poll_next(context)) else { break };
            self.over = state == State::Closing;
            let status = self.service.status(&state);
            if self.last.replace(status) != Some(status) {
                return Poll::Ready(Some(Ok(response(status))));
            }
        }
        Poll::Ready(None)
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
