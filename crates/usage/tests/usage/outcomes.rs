//! Calls that pass without a charge have outcomes of their own, on every store.

use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_core::key::KeySecret;
use weir_proto::v1::{GetUsageRequest, ShouldAllowRequest, TopConsumersRequest, TopConsumersResponse};
use weir_usage::{UsageConfig, with_usage};

use super::{Totals, get, key, totals, usage_of};
use crate::support::server::{Server, ask, ask_under, config};

const RULES: &str = r#"
strategies:
  many: { limits: [{ name: n, per: [consumer], fixed_window: { limit: 1000, window: 1h } }] }
  burst: { limits: [{ name: n, per: [consumer], fixed_window: { limit: 5, window: 1h } }] }
resources: [{ match: "burst/*", strategy: burst }]
"#;

weir_testing::on_every_store!(counts_what_passes_without_a_charge);

async fn counts_what_passes_without_a_charge(store: StoreConfig) {
    // Other tests count in the same Redis.
    let usage = UsageConfig { shared: false, sample: 1, ..UsageConfig::default() };
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let config = Config { store, rules, key_secret: Some(KeySecret::random()), ..config() };
    let server = Server::ready(with_usage(config, usage));
    let (mut client, mut usage) = (server.client().await, usage_of(&server).await);
    let bob = "bob".to_owned();
    let call = |id: &str, cost, peek| ShouldAllowRequest {
        id: id.to_owned(),
        cost: Some(cost),
        peek,
        ..ask_under("many", "x", &bob)
    };
    let mut asked = async |request| client.should_allow(request).await.unwrap().into_inner().allowed;
    for _ in 0..20 {
        assert!(asked(call("", 1, true)).await);
        assert!(asked(call("", 1, false)).await);
    }
    for _ in 0..3 {
        assert!(asked(call("", 0, false)).await);
        assert!(asked(call("1", 1, false)).await);
    }
    // A bucket of 5: what is denied is denied, also a peek and a cost of 0.
    let full = ShouldAllowRequest { cost: Some(5), ..ask("burst/a", &bob) };
    assert!(asked(full.clone()).await);
    assert!(!asked(ShouldAllowRequest { peek: true, ..full }).await);
    let expected = Totals::from([
        (key("many", "", "allowed"), (21, 21)),
        (key("many", "", "peeked"), (23, 0)),
        (key("many", "", "repeated"), (2, 0)),
        (key("burst", "burst/*", "allowed"), (1, 5)),
        (key("burst", "burst/*", "denied"), (1, 0)),
    ]);
    assert_eq!(totals(&get(&mut usage, GetUsageRequest::default()).await), expected);
    let page = server.get("/metrics").1;
    for (outcome, calls) in [("allowed", 21), ("peeked", 23), ("repeated", 2)] {
        let line = format!("weir_decisions_total{{strategy=\"many\",outcome=\"{outcome}\"}} {calls}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
    let request = TopConsumersRequest::default();
    let TopConsumersResponse { consumers, calls, .. } =
        usage.top_consumers(request).await.unwrap().into_inner();
    let most = consumers.first().map(|one| (one.strategy.as_str(), one.calls));
    assert_eq!((most, calls), (Some(("many", 21)), 23), "{consumers:?}");
}
