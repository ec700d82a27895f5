//! Wire ⇄ domain: the gRPC services over a limiter.
//!
//! Protobuf types stop here. A denial is an answer; everything else becomes a status in one function
//! (`service/status.rs`).

mod admin;
mod batch;
mod deadline;
mod message;
mod refund;
mod should_allow;
mod status;

use std::sync::Arc;
use std::time::Instant;

use tonic::{Request, Response, Status};

pub use admin::Admin;
pub use message::Templates;

use crate::limiter::{Limiter, MAX_BATCH};
use crate::proto::v1::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use crate::proto::v1::{
    RefundRequest, RefundResponse, ShouldAllowBatchRequest, ShouldAllowBatchResponse, ShouldAllowRequest,
    ShouldAllowResponse,
};
use crate::store::Store;

/// The largest message either way. A request with every field at its bound takes about 18 KiB, an
/// answer about 2 KiB; what is larger is refused before it is read.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// The largest batch. A request of a thousand ordinary questions takes about a tenth of it.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// The largest answer to a batch, which nothing that passes the other bounds can reach.
const MAX_BATCH_ANSWER_BYTES: usize = MAX_BATCH * (8 << 10);

/// `weir.v1.RateLimitService`.
pub struct RateLimit<S> {
    limiter: Limiter<S>,
    templates: Arc<Templates>,
}

impl<S: Store> RateLimit<S> {
    /// The service over a limiter.
    pub fn new(limiter: Limiter<S>, templates: Arc<Templates>) -> Arc<Self> {
        Arc::new(Self { limiter, templates })
    }

    /// The service for all methods but batches, with messages of at most `largest` bytes.
    pub fn server(self: &Arc<Self>, largest: usize) -> RateLimitServiceServer<Self> {
        RateLimitServiceServer::from_arc(Arc::clone(self))
            .max_decoding_message_size(largest)
            .max_encoding_message_size(largest)
    }

    /// The same service, bounded for batches.
    pub fn batch_server(self: &Arc<Self>) -> RateLimitServiceServer<Self> {
        RateLimitServiceServer::from_arc(Arc::clone(self))
            .max_decoding_message_size(MAX_BATCH_BYTES)
            .max_encoding_message_size(MAX_BATCH_ANSWER_BYTES)
    }

    async fn decide(
        &self,
        request: &ShouldAllowRequest,
        deadline: Option<Instant>,
    ) -> Result<ShouldAllowResponse, Status> {
        let ask = should_allow::ask(request, deadline);
        let answer = self.limiter.decide(&ask).await.map_err(status::of)?;
        Ok(should_allow::response(&answer, ask.cost, &self.templates))
    }
}

#[tonic::async_trait]
impl<S: Store> RateLimitService for RateLimit<S> {
    async fn should_allow(
        &self,
        request: Request<ShouldAllowRequest>,
    ) -> Result<Response<ShouldAllowResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        self.decide(request.get_ref(), deadline).await.map(Response::new)
    }

    async fn should_allow_batch(
        &self,
        request: Request<ShouldAllowBatchRequest>,
    ) -> Result<Response<ShouldAllowBatchResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        self.decide_batch(request.get_ref(), deadline).await.map(Response::new)
    }

    async fn refund(&self, request: Request<RefundRequest>) -> Result<Response<RefundResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let request = request.get_ref();
        let ask = refund::ask(request, deadline);
        let undone = self.limiter.refund(&ask, &request.limits, &request.id).await.map_err(status::of)?;
        Ok(Response::new(refund::response(&undone)))
    }
}
