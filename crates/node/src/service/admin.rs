//! `weir.v1.AdminService`: manual operations. Served only if configured.

mod leases;

use std::sync::Arc;

use tonic::{Request, Response, Status};
use weir_core::queue::MAX_ITEMS;
use weir_proto::v1::admin_service_server::{AdminService, AdminServiceServer};
use weir_proto::v1::{
    ListLeasesRequest, ListLeasesResponse, PurgeRequest, PurgeResponse, RedriveRequest, RedriveResponse,
    ReleaseLeasesRequest, ReleaseLeasesResponse, ResetRequest, ResetResponse,
};
use weir_store::Store;

use super::incoming::context;
use super::question_of::question_of;
use super::queue::WorkerQueues;
use super::queue::page::{next_of, page_of};
use super::{CurrentLeases, DecisionService, MAX_MESSAGE_BYTES, refund, status};
use crate::limiter::{Question, shown};
use crate::queues::{Queues, Redriven};

/// Dead letters that a call looks at if it names no number.
const MOST_LOOKED_AT: u32 = MAX_ITEMS as u32;

/// The service over the same limiter, leases and queues as the others.
pub struct AdminApi<S> {
    decisions: Arc<DecisionService<S>>,
    /// `None` if this server has no leases.
    leases: Option<Arc<CurrentLeases>>,
    /// The same queues as those of `QueueService`; none where it is off.
    queues: Option<WorkerQueues>,
}

impl<S: Store> AdminApi<S> {
    /// The service, bounded and ready to be served.
    pub fn server(
        decisions: &Arc<DecisionService<S>>,
        leases: Option<Arc<CurrentLeases>>,
        queues: Option<WorkerQueues>,
    ) -> AdminServiceServer<Self> {
        AdminServiceServer::new(Self { decisions: Arc::clone(decisions), leases, queues })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The queues under the current configuration.
    fn queues(&self) -> Result<Arc<Queues>, Status> {
        let queues = self.queues.as_ref().map(|queues| queues.load_full());
        queues.ok_or_else(|| Status::not_found("queue: the configuration has no `queues`"))
    }
}

#[tonic::async_trait]
impl<S: Store> AdminService for AdminApi<S> {
    async fn reset(&self, mut request: Request<ResetRequest>) -> Result<Response<ResetResponse>, Status> {
        let context = context(&mut request);
        let request = request.get_ref();
        let decisions = self.decisions.current();
        let question: Question<'_> = question_of!(request, 0, context, decisions.rights);
        let undone = decisions.limiter.reset(&question, &request.limits).await;
        tracing::info!(
            caller = question.rights.name(),
            method = "Reset",
            resource = shown(question.resource),
            consumer = shown(question.consumer),
            strategy = shown(question.strategy),
            error = undone.as_ref().err().map(tracing::field::display),
            "limits were reset by hand"
        );
        let undone = undone.map_err(status::of)?;
        Ok(Response::new(ResetResponse { limits: refund::states(&undone) }))
    }

    async fn list_leases(
        &self,
        mut request: Request<ListLeasesRequest>,
    ) -> Result<Response<ListLeasesResponse>, Status> {
        let context = context(&mut request);
        let service = self.leases()?.current();
        leases::list(&service, request.get_ref(), &context).await.map(Response::new)
    }

    async fn release_leases(
        &self,
        mut request: Request<ReleaseLeasesRequest>,
    ) -> Result<Response<ReleaseLeasesResponse>, Status> {
        let context = context(&mut request);
        let service = self.leases()?.current();
        leases::release(&service, request.get_ref(), &context).await.map(Response::new)
    }

    async fn redrive(
        &self,
        mut request: Request<RedriveRequest>,
    ) -> Result<Response<RedriveResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues()?, context.deadline);
        let rights = queues.rights().of(&context);
        let RedriveRequest { queue, max_items, after } = request.get_ref();
        let page = page_of(after, *max_items, MOST_LOOKED_AT)?;
        let redriven = queues.redrive(rights, queue, page, deadline).await;
        tracing::info!(
            caller = rights.name(),
            method = "Redrive",
            queue = shown(queue),
            items = redriven.as_ref().map(|redriven| redriven.items.len()).unwrap_or_default(),
            error = redriven.as_ref().err().map(tracing::field::display),
            "dead letters were brought back by hand"
        );
        let Redriven { items, next, is_full, depth, dead_depth } = redriven.map_err(status::of_queue)?;
        let item_ids = items.iter().map(ToString::to_string).collect();
        Ok(Response::new(RedriveResponse { item_ids, next: next_of(next), full: is_full, depth, dead_depth }))
    }

    async fn purge(&self, mut request: Request<PurgeRequest>) -> Result<Response<PurgeResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues()?, context.deadline);
        let rights = queues.rights().of(&context);
        let queue = &request.get_ref().queue;
        let purged = queues.purge(rights, queue, deadline).await;
        tracing::info!(
            caller = rights.name(),
            method = "Purge",
            queue = shown(queue),
            items = purged.as_ref().ok(),
            error = purged.as_ref().err().map(tracing::field::display),
            "a queue was emptied by hand"
        );
        Ok(Response::new(PurgeResponse { purged: purged.map_err(status::of_queue)? }))
    }
}

impl<S> AdminApi<S> {
    fn leases(&self) -> Result<&Arc<CurrentLeases>, Status> {
        self.leases.as_ref().ok_or_else(|| Status::failed_precondition("this server has no leases"))
    }
}
