//! `weir.v1.QueueAdminService`: operations of operators on queues. Served only if configured.

use crate::model::MAX_ITEMS;
use serde_json::json;
use tonic::{Request, Response, Status};
use weir_node::audit::AuditLog;
use weir_node::limiter::shown;
use weir_node::service::{MAX_MESSAGE_BYTES, audited, call_context as context};
use weir_proto::v1::queue_admin_service_server::{QueueAdminService, QueueAdminServiceServer};
use weir_proto::v1::{PurgeRequest, PurgeResponse, RedriveRequest, RedriveResponse};

use super::WorkerQueues;
use super::page::{next_of, page_of};
use super::status;
use crate::calls::Redriven;

/// Dead letters that a call looks at if it names no number.
const MOST_LOOKED_AT: u32 = MAX_ITEMS as u32;

/// The service over the same queues as `QueueService`.
pub(super) struct QueueAdminApi {
    queues: WorkerQueues,
    audit: AuditLog,
}

impl QueueAdminApi {
    /// The service, bounded and ready to be served.
    pub(super) fn server(queues: WorkerQueues, audit: AuditLog) -> QueueAdminServiceServer<Self> {
        QueueAdminServiceServer::new(Self { queues, audit })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl QueueAdminService for QueueAdminApi {
    async fn redrive(
        &self,
        mut request: Request<RedriveRequest>,
    ) -> Result<Response<RedriveResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
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
            "dead letters redriven by an operator"
        );
        let redriven = redriven.map_err(status::new);
        let result = |done: &Redriven| json!({ "items": done.items.len() });
        audited(&self.audit, ("Redrive", rights), request.get_ref(), &redriven, result);
        let Redriven { items, next, is_full, depth, dead_depth } = redriven?;
        let item_ids = items.iter().map(ToString::to_string).collect();
        Ok(Response::new(RedriveResponse { item_ids, next: next_of(next), full: is_full, depth, dead_depth }))
    }

    async fn purge(&self, mut request: Request<PurgeRequest>) -> Result<Response<PurgeResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let queue = &request.get_ref().queue;
        let purged = queues.purge(rights, queue, deadline).await;
        tracing::info!(
            caller = rights.name(),
            method = "Purge",
            queue = shown(queue),
            items = purged.as_ref().ok(),
            error = purged.as_ref().err().map(tracing::field::display),
            "queue purged by an operator"
        );
        let purged = purged.map_err(status::new);
        let result = |items: &u64| json!({ "items": items });
        audited(&self.audit, ("Purge", rights), request.get_ref(), &purged, result);
        Ok(Response::new(PurgeResponse { purged: purged? }))
    }
}
