//! Calls of Envoy's `RateLimitService`.

use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use super::Client;
use super::channel::AccessChannel;

impl Client {
    fn envoy(&self) -> RateLimitServiceClient<AccessChannel> {
        RateLimitServiceClient::new(self.channel.clone())
    }
}

calls! {
    /// Asks one question as Envoy does.
    should_rate_limit(RateLimitRequest) -> RateLimitResponse = envoy.should_rate_limit;
}
