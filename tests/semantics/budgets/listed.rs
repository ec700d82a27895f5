//! Consumers on access lists: an allowed one is never charged, and a denied one is asked nothing, but settles.

use prost_types::Duration;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::{Cost, SettleOutcome, SettleRequest, ShouldAllowRequest};

use crate::support::requests::About as _;
use crate::support::server::{Server, ask_under, config};

weir_testing::on_every_store!(lists_stop_questions_and_no_settlements);

const RULES: &str = "
strategies:
  listed:
    hold: { max: 1m }
    access: { allow: [keeper], deny: [mallory] }
    limits: [{ name: output, per: [consumer], cost: output, fixed_window: { limit: 100, window: 1w, anchored: true } }]
";

async fn lists_stop_questions_and_no_settlements(store: StoreConfig) {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { store, rules, ..config() });
    let mut client = server.client().await;
    let ask = |consumer: &str| ShouldAllowRequest {
        id: "one".to_owned(),
        hold_for: Some(Duration { seconds: 30, nanos: 0 }),
        costs: [("output".to_owned(), Cost { cost: 60, at_least: None })].into(),
        ..ask_under("listed", "lists", consumer)
    };
    let settle = |consumer: &str, output: u64| SettleRequest {
        id: "one".to_owned(),
        costs: [("output".to_owned(), output)].into(),
        ..SettleRequest::about("listed", "lists", consumer)
    };
    for _ in 0..3 {
        let kept = client.should_allow(ask("keeper")).await.unwrap().into_inner();
        assert!(kept.allowed && kept.held_for.is_none() && kept.limits.is_empty(), "{kept:?}");
    }
    let kept = client.settle(settle("keeper", 60)).await.unwrap().into_inner();
    assert_eq!((kept.applied, kept.outcome(), kept.limits.len()), (false, SettleOutcome::Unspecified, 0));
    let stopped = client.should_allow(ask("mallory")).await.unwrap().into_inner();
    assert!(!stopped.allowed && stopped.held_for.is_none(), "{stopped:?}");
    let settled = client.settle(settle("mallory", 70)).await.unwrap().into_inner();
    assert_eq!((settled.applied, settled.outcome()), (true, SettleOutcome::Unknown));
    assert_eq!((settled.limits[0].charged, settled.limits[0].remaining), (70, 30));
}
