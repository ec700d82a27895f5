//! Wire ⇄ domain: the gRPC services over a limiter.
//!
//! Protobuf types stop here. A denial is an answer; everything else becomes a status in one function
//! (`service/status.rs`).

mod deadline;
mod message;
mod should_allow;
mod status;

use std::sync::Arc;

use tonic::{Request, Response, Status};

pub use message::Templates;

use crate::limiter::Limiter;
use crate::proto::v1::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use crate::proto::v1::{ShouldAllowRequest, ShouldAllowResponse};
use crate::store::Store;

/// The largest message either way. A request with every field at its bound takes about 18 KiB, an
/// answer about 2 KiB; what is larger is refused before it is read.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// `weir.v1.RateLimitService`.
pub struct RateLimit<S> {
    limiter: Limiter<S>,
    templates: Arc<Templates>,
}

impl<S: Store> RateLimit<S> {
    /// The service, bounded and ready to be served.
    pub fn server(limiter: Limiter<S>, templates: Arc<Templates>) -> RateLimitServiceServer<Self> {
        RateLimitServiceServer::new(Self { limiter, templates })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl<S: Store> RateLimitService for RateLimit<S> {
    async fn should_allow(
        &self,
        request: Request<ShouldAllowRequest>,
    ) -> Result<Response<ShouldAllowResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let request = request.get_ref();
        let ask = should_allow::ask(request, deadline);
        let answer = self.limiter.decide(&ask).await.map_err(status::of)?;
        Ok(Response::new(should_allow::response(&answer, ask.cost, &self.templates)))
    }
}
