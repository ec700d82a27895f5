//! `weir.v1.AdminService`: manual operations. Served only if configured.

mod leases;

use std::sync::Arc;

use tonic::{Request, Response, Status};
use weir_grpc::CallContext;
use weir_proto::v1::admin_service_server::{AdminService, AdminServiceServer};
use weir_proto::v1::{
    ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest, ReleaseLeasesResponse, ResetRequest,
    ResetResponse,
};
use weir_store::Store;

use super::incoming::context;
use super::question_of::question_of;
use super::{CurrentLeases, DecisionService, MAX_MESSAGE_BYTES, refund, status};
use crate::limiter::{Question, shown};

/// The service over the same limiter and leases as the others.
pub struct AdminApi<S> {
    decisions: Arc<DecisionService<S>>,
    /// `None` if this server has no leases.
    leases: Option<Arc<CurrentLeases>>,
}

impl<S: Store> AdminApi<S> {
    /// The service, bounded and ready to be served.
    pub fn server(
        decisions: &Arc<DecisionService<S>>,
        leases: Option<Arc<CurrentLeases>>,
    ) -> AdminServiceServer<Self> {
        AdminServiceServer::new(Self { decisions: Arc::clone(decisions), leases })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl<S: Store> AdminService for AdminApi<S> {
    async fn reset(&self, mut request: Request<ResetRequest>) -> Result<Response<ResetResponse>, Status> {
        let context = context(&mut request);
        let request = request.get_ref();
        let question = question(request, &context);
        let decisions = self.decisions.current();
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
        leases::list(service.leases(), request.get_ref(), &context).await.map(Response::new)
    }

    async fn release_leases(
        &self,
        mut request: Request<ReleaseLeasesRequest>,
    ) -> Result<Response<ReleaseLeasesResponse>, Status> {
        let context = context(&mut request);
        let service = self.leases()?.current();
        leases::release(service.leases(), request.get_ref(), &context).await.map(Response::new)
    }
}

impl<S> AdminApi<S> {
    fn leases(&self) -> Result<&Arc<CurrentLeases>, Status> {
        self.leases.as_ref().ok_or_else(|| Status::failed_precondition("this server has no leases"))
    }
}

fn question<'a>(request: &'a ResetRequest, context: &'a CallContext) -> Question<'a> {
    question_of!(request, 0, context)
}
