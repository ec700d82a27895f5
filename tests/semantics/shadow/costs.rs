//! Shadows with costs by limit, of strategies with and without named costs.

use std::collections::HashMap;

use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::{Cost, DebitRequest, RefundRequest, ShouldAllowRequest};

use super::count;
use crate::support::requests::About as _;
use crate::support::server::{Server, ask_under};
use crate::support::{SOON, eventually};

/// Windows of a month, so that none ends while the test runs.
const RULES: &str = "
server: { workers: 1 }
strategies:
  llm:
    limits:
      - { name: calls, per: [resource, consumer], cost: 1, fixed_window: { limit: 99, calendar: month } }
      - { name: input, per: [resource, consumer], cost: input, fixed_window: { limit: 999, calendar: month } }
      - { name: output, per: [resource, consumer], cost: output, fixed_window: { limit: 999, calendar: month } }
    shadow: [tight, plain]
  tight:
    limits:
      - { name: calls, per: [resource, consumer], cost: 5, fixed_window: { limit: 99, calendar: month } }
      - { name: output, per: [resource, consumer], cost: output, fixed_window: { limit: 100, calendar: month } }
  plain: { limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 6, calendar: month } }] }
  api:
    limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 99, calendar: month } }]
    shadow: [double]
  double: { limits: [{ name: each, per: [resource, consumer], cost: 2, fixed_window: { limit: 5, calendar: month } }] }
";

weir_testing::on_every_store!(each_shadow_is_asked_for_the_costs_that_it_names);

async fn each_shadow_is_asked_for_the_costs_that_it_names(store: StoreConfig) {
    let config = Config::parse(RULES, "test", &ConfigOverrides::default()).unwrap();
    let server = Server::ready(Config { store, ..config });
    let mut client = server.client().await;
    let folder = tempfile::tempdir().unwrap();
    let resource = folder.path().display().to_string();
    let until = |strategy: &str, shadow: &str, expected: [u64; 2]| {
        let counts = || ["allowed", "denied"].map(|outcome| count(&server, strategy, shadow, outcome));
        eventually(SOON, &format!("{shadow}: {expected:?}, not {:?}", counts()), || counts() == expected);
    };
    let ask = |output: u64, at_least: Option<u64>| {
        let cost = |cost, at_least| Cost { cost, at_least };
        let costs = [("input".to_owned(), cost(1, None)), ("output".to_owned(), cost(output, at_least))];
        ShouldAllowRequest { costs: costs.into(), ..ask_under("llm", &resource, "bob") }
    };
    // Of 100 tokens of the shadow 60, then 40 of 60, then nothing. The one without costs takes the request's cost, 1.
    for (output, at_least, tight, plain) in
        [(60, None, [1, 0], [1, 0]), (60, Some(1), [2, 0], [2, 0]), (1, None, [2, 1], [3, 0])]
    {
        assert!(client.should_allow(ask(output, at_least)).await.unwrap().into_inner().allowed);
        until("llm", "tight", tight);
        until("llm", "plain", plain);
    }
    // What is given back and debited by name.
    let refund = RefundRequest {
        cost: Some(50),
        limits: vec!["output".to_owned()],
        ..RefundRequest::about("llm", &resource, "bob")
    };
    client.refund(refund).await.unwrap();
    client.should_allow(ask(45, None)).await.unwrap();
    until("llm", "tight", [3, 1]);
    let debit = |costs: &[(&str, u64)], cost| DebitRequest {
        costs: costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect::<HashMap<_, _>>(),
        cost,
        ..DebitRequest::about("llm", &resource, "bob")
    };
    client.debit(debit(&[("output", 5)], None)).await.unwrap();
    client.should_allow(ask(1, None)).await.unwrap();
    until("llm", "tight", [3, 2]);
    // Five calls were charged to the shadow without costs: a debit's `cost` is for it.
    until("llm", "plain", [5, 0]);
    client.debit(debit(&[("input", 1)], Some(1))).await.unwrap();
    client.should_allow(ask(0, None)).await.unwrap();
    until("llm", "plain", [5, 1]);
    // A fixed cost of a shadow, beside a strategy without any.
    for expected in [[1, 0], [2, 0], [2, 1]] {
        client.should_allow(ask_under("api", &resource, "bob")).await.unwrap();
        until("api", "double", expected);
    }
}
