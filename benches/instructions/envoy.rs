//! The same decision by Envoy's protocol: one descriptor of two entries, as Envoy's own examples send it.

use std::sync::Arc;

use prometheus::Registry;
use prost::Message as _;
use weir_core::strategy::Rules;
use weir_envoy::ENVOY;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::limiter::{EnvoyLimiter, Loaded};
use weir_envoy::metrics::EnvoyMetrics;
use weir_envoy::service::EnvoyRateLimit;
use weir_envoy::settings::EnvoyConfig;
use weir_grpc::{CallContext, IncomingCall, Messages, RequestBody};
use weir_node::audit::AuditLog;
use weir_node::feature::ServiceContext;
use weir_node::feature_parts::FeatureParts;
use weir_node::readiness::Readiness;
use weir_node::service::Snapshot;
use weir_node::telemetry::Metrics;
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_store::at_once;
use weir_store::memory::MemoryStore;
use weir_time::clock::Clock;

const FILE: &str = "
domain: bench
descriptors:
  - key: route
    value: api
    descriptors:
      - key: user
        rate_limit: { unit: second, requests_per_unit: 1000000 }
";

/// Asks so many times.
pub(crate) fn perform(store: MemoryStore, rules: Rules, calls: u64) {
    let service = service(store, rules);
    let framed = super::framed(&message());
    for _ in 0..calls {
        let request = IncomingCall {
            context: CallContext::default(),
            messages: Messages::new(RequestBody::whole(framed.clone()), 1 << 20),
        };
        assert!(matches!(at_once(service.should_rate_limit(request)), Some(Ok(_))), "it answers at once");
    }
}

fn service(store: MemoryStore, rules: Rules) -> Arc<EnvoyRateLimit> {
    let metrics = Metrics::register(&Registry::new(), &rules).unwrap();
    let counted = EnvoyMetrics::new(1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bench.yaml"), FILE).unwrap();
    let domains = EnvoyFiles::load(folder.path(), false).unwrap().compile();
    let loaded = Loaded::new(Arc::new(domains), &counted);
    let features = FeatureParts::default().with(ENVOY, loaded.part(true));
    let snapshot = Snapshot { features, ..Snapshot::new(rules, &metrics) };
    let audit = AuditLog::open(None, Clock::System).unwrap();
    let worker = ServiceContext::apart(0, Arc::new(store), &metrics, (&Readiness::starting(true), audit));
    let limiter = EnvoyLimiter::new(EnvoyConfig::default(), counted.recorder(0));
    EnvoyRateLimit::new(&worker, &snapshot, limiter)
}

fn message() -> Vec<u8> {
    let entry = |key: &str, value: &str| Entry { key: key.to_owned(), value: value.to_owned() };
    let entries = vec![entry("route", "api"), entry("user", "user_000000")];
    let descriptors = vec![RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }];
    RateLimitRequest { domain: "bench".to_owned(), descriptors, hits_addend: 1 }.encode_to_vec()
}
