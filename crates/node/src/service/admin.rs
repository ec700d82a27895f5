//! `weir.v1.AdminService`: what operators do with limits. Served only if configured.

use std::sync::Arc;

use tonic::{Request, Response, Status};
use weir_proto::v1::admin_service_server::{AdminService, AdminServiceServer};
use weir_proto::v1::{ResetRequest, ResetResponse};
use weir_store::Store;

use super::audited::audited;
use super::incoming::context;
use super::question_of::question_of;
use super::{DecisionService, MAX_MESSAGE_BYTES, refund, status};
use crate::audit::AuditLog;
use crate::limiter::{Question, shown};

/// The service over the same limiter as the others.
pub struct AdminApi<S> {
    decisions: Arc<DecisionService<S>>,
    audit: AuditLog,
}

impl<S: Store> AdminApi<S> {
    /// The service, bounded and ready to be served.
    pub fn server(decisions: &Arc<DecisionService<S>>, audit: AuditLog) -> AdminServiceServer<Self> {
        AdminServiceServer::new(Self { decisions: Arc::clone(decisions), audit })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
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
            "limits reset by an operator"
        );
        let undone = undone.map_err(status::new);
        audited(&self.audit, ("Reset", question.rights), request, &undone, |_| "applied".into());
        let undone = undone?;
        Ok(Response::new(ResetResponse { limits: refund::states(&undone) }))
    }
}
