//! `weir.v1.LeaseAdminService`: operations of operators on leases. Served only if configured.

use std::sync::Arc;

use serde_json::json;
use tonic::{Request, Response, Status};
use weir_grpc::CallContext;
use weir_node::audit::AuditLog;
use weir_node::limiter::{InvalidField, Question, shown};
use weir_node::question_of;
use weir_node::service::{MAX_MESSAGE_BYTES, audited, call_context as context, duration};
use weir_proto::v1::lease_admin_service_server::{LeaseAdminService, LeaseAdminServiceServer};
use weir_proto::v1::{
    HeldLease as LeaseMessage, ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest,
    ReleaseLeasesResponse,
};
use weir_units::Micros;

use super::{CurrentLeases, LeaseService, status};
use crate::model::{HeldLease, LeaseCursor, LeasePage, MAX_LEASE_ID};

/// The service over the same leases as `ConcurrencyService`.
pub(super) struct LeaseAdminApi {
    leases: Arc<CurrentLeases>,
    audit: AuditLog,
}

impl LeaseAdminApi {
    /// The service, bounded and ready to be served.
    pub(super) fn server(leases: &Arc<CurrentLeases>, audit: AuditLog) -> LeaseAdminServiceServer<Self> {
        LeaseAdminServiceServer::new(Self { leases: Arc::clone(leases), audit })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl LeaseAdminService for LeaseAdminApi {
    async fn list_leases(
        &self,
        mut request: Request<ListLeasesRequest>,
    ) -> Result<Response<ListLeasesResponse>, Status> {
        let context = context(&mut request);
        let service = self.leases.current();
        list(&service, request.get_ref(), &context).await.map(Response::new)
    }

    async fn release_leases(
        &self,
        mut request: Request<ReleaseLeasesRequest>,
    ) -> Result<Response<ReleaseLeasesResponse>, Status> {
        let context = context(&mut request);
        let service = self.leases.current();
        let (request, rights) = (request.get_ref(), service.rights().of(&context));
        let released = release(&service, request, &context).await;
        let result =
            |done: &ReleaseLeasesResponse| json!({ "released": done.released.len(), "left": done.left });
        audited(&self.audit, ("ReleaseLeases", rights), request, &released, result);
        released.map(Response::new)
    }
}

/// Lists a page of leases.
async fn list(
    service: &LeaseService,
    request: &ListLeasesRequest,
    context: &CallContext,
) -> Result<ListLeasesResponse, Status> {
    let question: Question<'_> = question_of!(request, 0, context, service.rights());
    let after = cursor(&request.page_token).map_err(|error| status::invalid(&error))?;
    let LeasePage { now, count, leases, more } =
        service.leases().list(&question, after).await.map_err(status::new)?;
    let next = leases.last().filter(|_| more).map(|last| format!("{}:{}", last.ends.0, last.id));
    let leases = leases.into_iter().map(|lease| message(lease, now)).collect();
    Ok(ListLeasesResponse { leases, count, next_page_token: next.unwrap_or_default() })
}

/// Releases leases for their holders.
async fn release(
    service: &LeaseService,
    request: &ReleaseLeasesRequest,
    context: &CallContext,
) -> Result<ReleaseLeasesResponse, Status> {
    let question: Question<'_> = question_of!(request, 0, context, service.rights());
    if request.all != request.ids.is_empty() {
        let value = format!("{} with all = {}", request.ids.len(), request.all);
        let bound = "name ids, or set `all`, and not both".to_owned();
        return Err(status::invalid(&InvalidField { field: "ids", value, bound }));
    }
    let released = service.leases().release_all(&question, &request.ids).await;
    tracing::info!(
        caller = question.rights.name(),
        method = "ReleaseLeases",
        resource = shown(question.resource),
        consumer = shown(question.consumer),
        strategy = shown(question.strategy),
        released = released.as_ref().ok().map(|released| released.ids.len()),
        error = released.as_ref().err().map(tracing::field::display),
        "leases released by an operator"
    );
    let released = released.map_err(status::new)?;
    Ok(ReleaseLeasesResponse { released: released.ids, left: released.left })
}

/// Reads a token: the end of a lease in microseconds, a colon, and its id.
fn cursor(token: &str) -> Result<Option<LeaseCursor<'_>>, InvalidField> {
    if token.is_empty() {
        return Ok(None);
    }
    let parts = token.split_once(':').filter(|(_, id)| id.len() <= MAX_LEASE_ID);
    let parts = parts.and_then(|(ends, id)| Some(LeaseCursor { ends: Micros(ends.parse().ok()?), id }));
    let bound = "it must be empty, or the `next_page_token` of an answer".to_owned();
    parts.map(Some).ok_or(InvalidField { field: "page_token", value: format!("\"{}\"", shown(token)), bound })
}

fn message(lease: HeldLease, now: Micros) -> LeaseMessage {
    let HeldLease { id, weight, acquired, ends, partition } = lease;
    LeaseMessage {
        id: id.into(),
        weight,
        held_for: Some(duration(Micros(now.0.saturating_sub(acquired.0)))),
        expires_after: Some(duration(Micros(ends.0.saturating_sub(now.0)))),
        partition: partition.map(String::from).unwrap_or_default(),
    }
}
