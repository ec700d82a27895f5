//! An AI gateway's calls: asked with costs by name, held, settled; through the real server.

use std::collections::HashMap;

use prost_types::Duration;
use tonic::Code;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::{
    Cost, DebitRequest, LimitStatus, RefundRequest, SettleOutcome, SettleRequest, ShouldAllowRequest,
    ShouldAllowResponse,
};

use crate::support::requests::About as _;
use crate::support::server::{Server, config};

weir_testing::on_every_store!(calls_are_held_and_settled_once);

/// Windows of a week, so that none ends while the test runs.
const RULES: &str = "
strategies:
  llm:
    hold: { max: 10m, known_for: 1h }
    limits:
      - { name: rpm, per: [consumer], cost: 1, fixed_window: { limit: 60, window: 1w, anchored: true } }
      - name: input
        per: [consumer]
        cost: input
        charge: at_once
        fixed_window: { limit: 1_000, window: 1w, anchored: true }
      - name: output
        per: [consumer]
        cost: output
        unit: tokens
        near_limit: 80%
        fixed_window: { limit: 1_000, window: 1w, anchored: true }
";

fn ask(id: &str, output: Cost) -> ShouldAllowRequest {
    let costs = [("input".to_owned(), Cost { cost: 100, at_least: None }), ("output".to_owned(), output)];
    ShouldAllowRequest {
        resource: "chat".to_owned(),
        consumer: "bob".to_owned(),
        strategy: "llm".to_owned(),
        id: id.to_owned(),
        costs: costs.into_iter().collect(),
        hold_for: (!id.is_empty()).then_some(Duration { seconds: 120, nanos: 0 }),
        ..ShouldAllowRequest::default()
    }
}

const fn cost(cost: u64) -> Cost {
    Cost { cost, at_least: None }
}

fn settle(id: &str, costs: &[(&str, u64)]) -> SettleRequest {
    SettleRequest { id: id.to_owned(), costs: used(costs), ..SettleRequest::about("llm", "chat", "bob") }
}

fn used(costs: &[(&str, u64)]) -> HashMap<String, u64> {
    costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect()
}

fn limit<'a>(answer: &'a ShouldAllowResponse, name: &str) -> &'a LimitStatus {
    answer.limits.iter().find(|limit| limit.name == name).unwrap()
}

async fn calls_are_held_and_settled_once(store: StoreConfig) {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { store, rules, ..config() });
    let mut client = server.client().await;

    let held = client.should_allow(ask("one", cost(600))).await.unwrap().into_inner();
    assert!(held.allowed && held.applied == Some(true), "{held:?}");
    assert_eq!((held.limit, held.remaining, held.granted), (None, None, None), "units differ");
    let span = held.held_for.unwrap().seconds;
    assert!((120..=120 + 38).contains(&span), "120 s, and a grain of 600 s / 16 at most: {span}");
    let output = limit(&held, "output");
    assert_eq!((output.cost, output.granted, output.held, output.remaining), (600, 600, 600, 400));
    assert!(!output.near_limit);
    assert_eq!((limit(&held, "input").held, limit(&held, "input").remaining), (0, 900), "charged at once");
    assert_eq!(limit(&held, "rpm").remaining, 59);

    let denied = client.should_allow(ask("two", cost(500))).await.unwrap().into_inner();
    assert!(!denied.allowed && denied.denied_by == ["output"], "{denied:?}");
    assert_eq!((limit(&denied, "input").remaining, limit(&denied, "rpm").remaining), (900, 59), "no trace");
    assert!(denied.denial_valid_for.is_none(), "a settlement may end it");
    let fits = Cost { cost: 500, at_least: Some(1) };
    let fitted = client.should_allow(ask("two", fits)).await.unwrap().into_inner();
    assert_eq!((limit(&fitted, "output").granted, limit(&fitted, "output").held), (400, 1_000));
    assert!(limit(&fitted, "output").near_limit && !limit(&fitted, "output").crossed_near_limit);

    let repeated = client.should_allow(ask("one", cost(600))).await.unwrap().into_inner();
    assert_eq!((repeated.allowed, repeated.applied), (true, Some(false)));
    let other = client.should_allow(ask("one", cost(601))).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);

    let settled = client.settle(settle("one", &[("output", 50), ("input", 130)])).await.unwrap().into_inner();
    assert_eq!((settled.applied, settled.outcome()), (true, SettleOutcome::Settled));
    let charged: Vec<_> =
        settled.limits.iter().map(|limit| (&*limit.name, limit.used, limit.charged)).collect();
    assert_eq!(charged[1..], [("input", 130, 30), ("output", 50, 50)]);
    let again = client.settle(settle("one", &[("output", 50), ("input", 130)])).await.unwrap().into_inner();
    assert_eq!((again.applied, again.outcome()), (false, SettleOutcome::Settled));
    let differs = client.settle(settle("one", &[("output", 51)])).await.unwrap_err();
    assert_eq!(differs.code(), Code::AlreadyExists);
    let reused = client.should_allow(ask("one", cost(600))).await.unwrap_err();
    assert_eq!(reused.code(), Code::AlreadyExists, "a settled id is no free call");

    let unknown = client.settle(settle("three", &[("output", 10)])).await.unwrap().into_inner();
    assert_eq!((unknown.applied, unknown.outcome()), (true, SettleOutcome::Unknown));
    let zeros = client.settle(settle("two", &[("output", 0), ("input", 0)])).await.unwrap().into_inner();
    assert_eq!(zeros.limits[2].remaining, 1_000 - 60, "nothing is held any more");

    let debit = DebitRequest { costs: used(&[("output", 800)]), ..DebitRequest::about("llm", "chat", "bob") };
    let debited = client.debit(debit).await.unwrap().into_inner();
    assert_eq!(debited.limits[2].charged, 800);
    let refund = RefundRequest { cost: Some(800), ..RefundRequest::about("llm", "chat", "bob") };
    let unnamed = client.refund(refund.clone()).await.unwrap_err();
    assert_eq!(unnamed.code(), Code::InvalidArgument);
    let named = RefundRequest { limits: vec!["output".to_owned()], ..refund };
    assert_eq!(client.refund(named).await.unwrap().into_inner().limits[0].remaining, 1_000 - 60);

    let missing =
        ShouldAllowRequest { costs: HashMap::new(), hold_for: None, id: String::new(), ..ask("", cost(1)) };
    let missing = client.should_allow(missing).await.unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument);
    assert!(missing.message().contains("a forgotten cost is no free call"), "{missing}");
}
