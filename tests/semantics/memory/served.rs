//! The service tells its memory store which strategies and domains share the budget.

use std::fs;

use weir_config::{Config, MemoryConfig, StoreConfig};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{FailurePolicy, Field, Resources, Rules};
use weir_envoy::settings::{EnvoyConfig, with_envoy};
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::should_allow_result::Result as Ended;
use weir_proto::v1::{ShouldAllowBatchRequest, ShouldAllowRequest};

use super::{HOUR, MIB};
use crate::support::rules::strategy;
use crate::support::server::{Server, ask_under, config};

/// Only one of the owners has keys. A store that does not know of the others would let it use the whole budget.
#[tokio::test]
async fn a_flood_of_one_strategy_leaves_a_tenth_to_the_others_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: hour, requests_per_unit: 1 }\n";
    fs::write(folder.path().join("edge.yaml"), file).unwrap();
    let bucket = Algorithm::bucket(10, Rate { count: 1, period: HOUR }).unwrap();
    let of = |name| strategy(name, &[("each", &[Field::Consumer], bucket)], FailurePolicy::Error);
    let envoy = EnvoyConfig { config: Some(folder.path().to_owned()), ..EnvoyConfig::default() };
    let config = Config {
        store: StoreConfig::Memory(MemoryConfig { budget: MIB, ..MemoryConfig::default() }),
        rules: Rules::new(vec![of("flood"), of("other")], Resources::default()),
        ..config()
    };
    let server = Server::ready(with_envoy(config, envoy));
    assert!(spend_ten(&server, "flood", 30_000).await < 20_000, "the rest was refused");
    let bytes = server.metric("weir_memory_bytes");
    assert!(bytes as f64 <= 0.9 * MIB as f64, "{bytes}");
    assert_eq!(spend_ten(&server, "other", 600).await, 600);
    let mut envoy = RateLimitServiceClient::new(server.channel().await);
    for user in 0..300 {
        let entries = vec![Entry { key: "user".to_owned(), value: user.to_string() }];
        let descriptors = vec![RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }];
        let request =
            RateLimitRequest { domain: "edge".to_owned(), descriptors, ..RateLimitRequest::default() };
        envoy.should_rate_limit(request).await.unwrap();
    }
}

/// Spends all of so many keys of a strategy; returns how many were admitted.
async fn spend_ten(server: &Server, strategy: &str, keys: usize) -> usize {
    let (mut client, mut admitted) = (server.client().await, 0);
    for from in (0..keys).step_by(500) {
        let ask = |key| ShouldAllowRequest {
            cost: Some(10),
            ..ask_under(strategy, "r", &format!("consumer {key}"))
        };
        let requests = (from..keys.min(from + 500)).map(ask).collect();
        let answers = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
        let is_admitted =
            |ended: &Option<Ended>| matches!(ended, Some(Ended::Response(answer)) if answer.allowed);
        admitted += answers.into_inner().results.iter().filter(|result| is_admitted(&result.result)).count();
    }
    admitted
}
