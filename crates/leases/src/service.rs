//! `weir.v1.ConcurrencyService`: leases, from messages to messages.

mod admin;
mod status;

use std::sync::Arc;

use arc_swap::ArcSwap;
use prost_types::Duration;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use weir_core::strategy::{Listed, MAX_LEASES};
use weir_node::access::SnapshotRights;
use weir_node::feature::ServiceContext;
use weir_node::limiter::InvalidField;
use weir_node::question_of;
use weir_node::service::{
    AddRoutes, Facts, MAX_MESSAGE_BYTES, STORE_FAILURE, Snapshot, Templates, call_context as context,
    duration, micros,
};
use weir_node::settle::Outcome;
use weir_node::telemetry::Recorder;
use weir_proto::v1::concurrency_service_server::{self, ConcurrencyService, ConcurrencyServiceServer};
use weir_proto::v1::{
    AcquireRequest, AcquireResponse, Reason, ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse,
    WorkOutcome, lease_admin_service_server,
};
use weir_units::{Micros, Retry};

use self::admin::LeaseAdminApi;
use crate::calls::{Acquired, LeaseQuestion, Leases, PermitsDecision};
use crate::model::{self, LeaseAnswer, LeaseOutcome, LeaseRefusal};

/// Weight of a lease whose caller names none.
const DEFAULT_WEIGHT: u64 = 1;

/// Returns the services of one worker on a port, by name.
pub(crate) fn routes(leases: &Arc<CurrentLeases>, worker: &ServiceContext) -> Vec<(&'static str, AddRoutes)> {
    let mut routes: Vec<(&'static str, AddRoutes)> = Vec::new();
    if worker.serves_calls {
        let service = ConcurrencyApi::server(leases);
        let add = |routes: Routes| routes.add_service(service);
        routes.push((concurrency_service_server::SERVICE_NAME, Box::new(add)));
    }
    if worker.serves_operators {
        let service = LeaseAdminApi::server(leases, worker.audit.clone());
        let add = |routes: Routes| routes.add_service(service);
        routes.push((lease_admin_service_server::SERVICE_NAME, Box::new(add)));
    }
    routes
}

/// The service over one worker's leases.
struct ConcurrencyApi {
    current: Arc<CurrentLeases>,
}

/// One worker's leases under the current snapshot.
pub(crate) struct CurrentLeases(ArcSwap<LeaseService>);

/// One worker's leases under one snapshot.
pub(super) struct LeaseService {
    leases: Leases,
    rights: SnapshotRights,
    templates: Arc<Templates>,
}

impl CurrentLeases {
    /// Creates leases under the first snapshot.
    pub(crate) fn new(leases: Leases, templates: Arc<Templates>) -> Arc<Self> {
        let rights = SnapshotRights::default();
        Arc::new(Self(ArcSwap::from_pointee(LeaseService { leases, rights, templates })))
    }

    /// The leases under the current snapshot.
    pub(super) fn current(&self) -> Arc<LeaseService> {
        self.0.load_full()
    }

    /// Serves another snapshot from now on. Calls that have begun keep theirs.
    pub(crate) fn follow(&self, snapshot: &Snapshot, recorder: Arc<Recorder>) {
        let (rules, removed) = (Arc::clone(&snapshot.rules), Arc::clone(&snapshot.removed));
        let leases = self.0.load().leases.with_rules(rules, removed, recorder);
        let (rights, templates) = (snapshot.rights.clone(), Arc::clone(&snapshot.templates));
        self.0.store(Arc::new(LeaseService { leases, rights, templates }));
    }
}

impl LeaseService {
    pub(super) fn leases(&self) -> &Leases {
        &self.leases
    }

    pub(super) fn rights(&self) -> &SnapshotRights {
        &self.rights
    }
}

impl ConcurrencyApi {
    /// The service, bounded and ready to be served.
    fn server(current: &Arc<CurrentLeases>) -> ConcurrencyServiceServer<Self> {
        ConcurrencyServiceServer::new(Self { current: Arc::clone(current) })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl ConcurrencyService for ConcurrencyApi {
    async fn acquire(
        &self,
        mut request: Request<AcquireRequest>,
    ) -> Result<Response<AcquireResponse>, Status> {
        let (context, service) = (context(&mut request), self.current.0.load_full());
        let request = request.get_ref();
        let AcquireRequest { id, weight, ttl, .. } = request;
        let question = LeaseQuestion { asked: question_of!(request, 0, context, service.rights), id };
        let weight = weight.unwrap_or(DEFAULT_WEIGHT);
        let ttl = ttl.as_ref().map(|ttl| span("ttl", ttl)).transpose()?;
        let acquired = service.leases.acquire(&question, weight, ttl).await.map_err(status::new)?;
        Ok(Response::new(service.acquired(&acquired, id, weight)))
    }

    async fn renew(&self, mut request: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        let (context, service) = (context(&mut request), self.current.0.load_full());
        let request = request.get_ref();
        let RenewRequest { id, ttl, .. } = request;
        let question = LeaseQuestion { asked: question_of!(request, 0, context, service.rights), id };
        let ttl = ttl.as_ref().map(|ttl| span("ttl", ttl)).transpose()?;
        let answer = service.leases.renew(&question, ttl).await.map_err(status::new)?;
        let LeaseAnswer { outcome, limit, in_flight, remaining, .. } = answer;
        let expires_after = expires_after(&outcome);
        let held = expires_after.is_some();
        Ok(Response::new(RenewResponse { held, expires_after, limit, in_flight, remaining }))
    }

    async fn release(
        &self,
        mut request: Request<ReleaseRequest>,
    ) -> Result<Response<ReleaseResponse>, Status> {
        let (context, service) = (context(&mut request), self.current.0.load_full());
        let request = request.get_ref();
        let ReleaseRequest { id, outcome, rtt, .. } = request;
        let question = LeaseQuestion { asked: question_of!(request, 0, context, service.rights), id };
        let outcome = work_outcome(*outcome)?;
        let rtt = rtt.as_ref().map(|rtt| span("rtt", rtt)).transpose()?;
        let answer = service.leases.release(&question, outcome, rtt).await.map_err(status::new)?;
        let LeaseAnswer { outcome, limit, in_flight, remaining, .. } = answer;
        let held = outcome == LeaseOutcome::Released;
        Ok(Response::new(ReleaseResponse { held, limit, in_flight, remaining }))
    }
}

impl LeaseService {
    fn acquired(&self, acquired: &Acquired, id: &str, weight: u64) -> AcquireResponse {
        let plain = |allowed, reason: Reason| AcquireResponse {
            allowed,
            reason: reason.into(),
            ..Default::default()
        };
        match acquired {
            Outcome::Listed(Listed::Allow) => plain(true, Reason::AllowList),
            Outcome::Listed(Listed::Deny) => AcquireResponse {
                message: "The consumer is on the deny list".to_owned(),
                ..plain(false, Reason::DenyList)
            },
            // Only rate limits have bans.
            Outcome::Banned(_) => plain(false, Reason::Banned),
            Outcome::Policy { allowed } => {
                let message = if *allowed { "" } else { STORE_FAILURE }.to_owned();
                AcquireResponse { degraded: true, message, ..plain(*allowed, Reason::StoreFailure) }
            }
            Outcome::Decided(PermitsDecision { answer, most })
            | Outcome::Local(PermitsDecision { answer, most }) => self.answered(answer, id, weight, *most),
        }
    }

    fn answered(&self, answer: &LeaseAnswer, id: &str, weight: u64, most: u64) -> AcquireResponse {
        let LeaseAnswer { outcome, limit, in_flight, remaining, .. } = *answer;
        let numbers = AcquireResponse {
            limit: Some(limit),
            in_flight: Some(in_flight),
            remaining: Some(remaining),
            ..Default::default()
        };
        let LeaseOutcome::Refused { refusal, bound } = outcome else {
            let (id, reason) = (id.to_owned(), Reason::Ok.into());
            return AcquireResponse {
                allowed: true,
                id,
                reason,
                expires_after: expires_after(&outcome),
                ..numbers
            };
        };
        let (reason, retry) = match refusal {
            LeaseRefusal::Limited => (Reason::Limited, Retry::Unknown),
            LeaseRefusal::Full | LeaseRefusal::NoMemory => (Reason::Full, Retry::Unknown),
            LeaseRefusal::Never => (Reason::Never, Retry::Never),
        };
        // An adaptive limit may rise again: a weight can never pass only if it is above the highest limit.
        let limit = if refusal == LeaseRefusal::Never { most } else { limit };
        let message = match refusal {
            LeaseRefusal::Full => {
                format!("There are {MAX_LEASES} leases, as many as there may be. Try again when one ends")
            }
            LeaseRefusal::NoMemory => "The store has no memory for another lease. Try again later".to_owned(),
            _ => self.templates.render_permits(Facts { retry, cost: weight, limit }),
        };
        AcquireResponse { reason: reason.into(), lease_expiry_bound: bound.map(duration), message, ..numbers }
    }
}

fn work_outcome(outcome: i32) -> Result<model::WorkOutcome, Status> {
    match WorkOutcome::try_from(outcome) {
        Ok(WorkOutcome::Unspecified | WorkOutcome::Success) => Ok(model::WorkOutcome::Success),
        Ok(WorkOutcome::Ignored) => Ok(model::WorkOutcome::Ignored),
        Ok(WorkOutcome::Dropped) => Ok(model::WorkOutcome::Dropped),
        Err(_) => {
            let bound = "it must be 0 to 3: SUCCESS, IGNORED or DROPPED".to_owned();
            Err(invalid("outcome", outcome.to_string(), bound))
        }
    }
}

fn span(field: &'static str, given: &Duration) -> Result<Micros, Status> {
    micros(field, given, "it must be a duration above 0").map_err(|error| status::invalid(&error))
}

fn invalid(field: &'static str, value: String, bound: String) -> Status {
    status::invalid(&InvalidField { field, value, bound })
}

fn expires_after(outcome: &LeaseOutcome) -> Option<Duration> {
    match outcome {
        LeaseOutcome::Held { expires_after, .. } => Some(duration(*expires_after)),
        _ => None,
    }
}
