//! `grpc.health.v1`, from [`Readiness`].
//!
//! The empty name is this process: SERVING until shutdown, whatever the state of Redis, so that no orchestrator
//! restarts nodes because their store is down. The full name of each enabled service reports readiness, and so does
//! `ratelimit`, the name in the reference implementation of Envoy's service. A service that needs something of Redis that no
//! node of it has, such as the rights of queues, is NOT_SERVING by itself. A watch reports the drain at once and
//! ends when its connection does. Otherwise an open watch would delay the shutdown, and a watch that ended before
//! would be opened again and again.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use weir_proto::health::{HealthListRequest, HealthListResponse, health_server};
use weir_proto::v1::rate_limit_service_server::SERVICE_NAME;

use crate::readiness::{Readiness, State};

pub(super) struct HealthApi {
    readiness: Readiness,
    /// The full names of all enabled services.
    services: Vec<&'static str>,
}

/// The service name in the reference implementation of Envoy's service.
const REFERENCE: &str = "ratelimit";

#[derive(Clone, Copy)]
enum HealthName {
    Process,
    Service(&'static str),
    Unknown,
}

/// The status of one service: now, and at every change.
pub(super) struct HealthWatch {
    service: HealthName,
    states: WatchStream<State>,
    state: Option<State>,
    missing: WatchStream<Vec<&'static str>>,
    is_missing: bool,
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
            return HealthName::Process;
        }
        let mut names = self.services.iter().copied().chain([REFERENCE]);
        names.find(|known| *known == name).map_or(HealthName::Unknown, HealthName::Service)
    }

    fn status(&self, name: HealthName) -> ServingStatus {
        name.status(&self.readiness.state(), name.is_in(&self.readiness.missing_services().borrow()))
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
            service => Ok(Response::new(response(self.status(service)))),
        }
    }

    async fn list(&self, _: Request<HealthListRequest>) -> Result<Response<HealthListResponse>, Status> {
        let names = self.services.iter().copied().chain(["", REFERENCE]);
        let statuses = names.map(|name| (name.to_owned(), response(self.status(self.named(name)))));
        Ok(Response::new(HealthListResponse { statuses: statuses.collect() }))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthWatch>, Status> {
        let service = self.named(&request.get_ref().service);
        let states = WatchStream::new(self.readiness.subscribe());
        let missing = WatchStream::new(self.readiness.missing_services());
        let watch =
            HealthWatch { service, states, state: None, missing, is_missing: false, last: None, over: false };
        Ok(Response::new(watch))
    }
}

impl HealthName {
    fn is_in(self, missing: &[&str]) -> bool {
        matches!(self, Self::Service(name) if missing.contains(&name))
    }

    fn status(self, state: &State, is_missing: bool) -> ServingStatus {
        match (self, state) {
            (Self::Unknown, _) => ServingStatus::ServiceUnknown,
            _ if is_missing => ServingStatus::NotServing,
            (_, State::Draining | State::Closing)
            | (Self::Service(_), State::NotReady(_) | State::WithoutStore(_)) => ServingStatus::NotServing,
            (_, State::Ready | State::Degraded(_))
            | (Self::Process, State::NotReady(_) | State::WithoutStore(_)) => ServingStatus::Serving,
        }
    }
}

impl Stream for HealthWatch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        while let Poll::Ready(Some(missing)) = Pin::new(&mut self.missing).poll_next(context) {
            self.is_missing = self.service.is_in(&missing);
        }
        while !self.over {
            match Pin::new(&mut self.states).poll_next(context) {
                Poll::Ready(Some(state)) => {
                    self.over = state == State::Closing;
                    self.state = Some(state);
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => break,
            }
        }
        let status = self.state.as_ref().map(|state| self.service.status(state, self.is_missing));
        match status.filter(|status| self.last.replace(*status) != Some(*status)) {
            Some(status) => Poll::Ready(Some(Ok(response(status)))),
            None if self.over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
