//! Envoy's service as a generated trait, which any server of tonic serves.

use std::sync::Arc;

use tonic::{Request, Response, Status};
use weir_node::service::{incoming, one_message};
use weir_proto::Encoded;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use super::{EnvoyRateLimit, MAX_RATE_LIMIT_BYTES};

/// The trait over an [`EnvoyRateLimit`]. Its method calls what `weir_grpc` calls.
pub struct EnvoyService(Arc<EnvoyRateLimit>);

impl EnvoyService {
    /// The service, bounded and ready to be served.
    pub fn server(envoy: &Arc<EnvoyRateLimit>) -> RateLimitServiceServer<Self> {
        RateLimitServiceServer::new(Self::new(envoy)).max_decoding_message_size(MAX_RATE_LIMIT_BYTES)
    }

    /// The trait.
    pub(super) fn new(envoy: &Arc<EnvoyRateLimit>) -> Self {
        Self(Arc::clone(envoy))
    }
}

#[tonic::async_trait]
impl RateLimitService for EnvoyService {
    async fn should_rate_limit(
        &self,
        request: Request<Encoded<RateLimitRequest>>,
    ) -> Result<Response<Encoded<RateLimitResponse>>, Status> {
        one_message(self.0.should_rate_limit(incoming(request, MAX_RATE_LIMIT_BYTES)?).await?)
    }
}
