//! Costs by name: what was used of each, from the first call to the settlement, over all nodes; and what is held.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_config::{Config, ConfigOverrides, StoreConfig, Topology};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{Cost, DebitRequest, GetUsageRequest, SettleRequest, ShouldAllowRequest, UsageSeries};
use weir_usage::{UsageConfig, with_usage};

use super::{get, usage_of};
use crate::support::command::{text, weir};
use crate::support::server::{Server, config};
use crate::support::{RedisServer, SOON, eventually_async, redis_config, stores};

const RULES: &str = "
strategies:
  llm:
    hold: { max: 10m }
    limits:
      - { name: input, per: [consumer], cost: input, charge: at_once, fixed_window: { limit: 1_000, window: 1w, anchored: true } }
      - { name: output, per: [consumer], cost: output, max_debt: 100, unit: tokens, fixed_window: { limit: 1_000, window: 1w, anchored: true } }
resources: [{ match: chat, strategy: llm }]
";

fn node(name: &str, store: StoreConfig) -> Config {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let usage = UsageConfig { node: Some(name.to_owned()), ..UsageConfig::default() };
    with_usage(Config { store, rules, ..config() }, usage)
}

fn on(redis: &RedisServer) -> StoreConfig {
    StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single))
}

fn ask(id: &str, input: u64, output: u64) -> ShouldAllowRequest {
    let costs = [("input", input), ("output", output)];
    let cost = |(name, cost): (&str, u64)| (name.to_owned(), Cost { cost, at_least: None });
    ShouldAllowRequest {
        resource: "chat".to_owned(),
        consumer: "bob".to_owned(),
        id: id.to_owned(),
        costs: costs.map(cost).into(),
        hold_for: (!id.is_empty()).then_some(prost_types::Duration { seconds: 120, nanos: 0 }),
        ..ShouldAllowRequest::default()
    }
}

fn settle(id: &str, output: u64) -> SettleRequest {
    SettleRequest {
        resource: "chat".to_owned(),
        consumer: "bob".to_owned(),
        id: id.to_owned(),
        costs: [("output".to_owned(), output)].into(),
        ..SettleRequest::default()
    }
}

/// Plain calls, holds, settlements and a debit. In all, 40 of input and 655 of output are used, and 50 are held.
async fn load(server: &Server) {
    let mut client = RateLimitServiceClient::new(server.channel().await);
    for request in
        [ask("", 10, 5), ask("one", 30, 300), ask("one", 30, 300), ask("open", 7, 50), ask("", 1, 9_999)]
    {
        client.should_allow(request).await.unwrap();
    }
    client.should_allow(ShouldAllowRequest { peek: true, ..ask("", 1, 1) }).await.unwrap();
    for request in [settle("one", 250), settle("one", 250), settle("never asked", 300)] {
        client.settle(request).await.unwrap();
    }
    let debit = DebitRequest {
        resource: "chat".to_owned(),
        consumer: "bob".to_owned(),
        costs: [("output".to_owned(), 100)].into(),
        ..DebitRequest::default()
    };
    client.debit(debit).await.unwrap();
}

fn used(input: u64, output: u64) -> BTreeMap<String, u64> {
    [("input".to_owned(), input), ("output".to_owned(), output)].into()
}

fn allowed(series: &[UsageSeries]) -> &UsageSeries {
    series.iter().find(|series| series.outcome == "allowed").unwrap()
}

#[tokio::test]
async fn what_was_used_of_each_cost_is_counted_once_and_held_units_are_shown() {
    let server = Server::start(node("one", stores::memory()));
    load(&server).await;
    let mut usage = usage_of(&server).await;
    let answer = get(&mut usage, GetUsageRequest::default()).await;
    let series = allowed(&answer.series);
    assert_eq!(series.costs, used(40, 655));
    assert_eq!(series.units, [("output".to_owned(), "tokens".to_owned())].into());
    assert_eq!((series.calls, series.cost), (3, 0), "a sum of different units would be none");
    assert_eq!(series.points[0].costs, series.costs);
    let others = || answer.series.iter().filter(|series| series.outcome != "allowed");
    assert!(
        others().count() >= 2 && others().all(|series| series.costs.is_empty() && series.cost == 0),
        "{answer:?}"
    );
    // The page has the same, and what this node knows of holds.
    let page: Value = serde_json::from_str(&server.get("/ui/data").1).unwrap();
    let held =
        |limit: &str| page["costs"].as_array().unwrap().iter().find(|one| one["limit"] == limit).unwrap();
    let output =
        json!({ "strategy": "llm", "limit": "output", "cost": "output", "unit": "tokens", "held": 50.0 });
    assert_eq!(held("output"), &output);
    assert_eq!(held("input")["held"], Value::Null, "it is charged at once");
    let series = page["series"].as_array().unwrap();
    let series = series.iter().find(|one| one["outcome"] == "allowed").unwrap();
    assert_eq!(series["costs"], json!({ "input": 40, "output": 655 }));
    let metrics = server.get("/metrics").1;
    for line in [
        "weir_held_units{strategy=\"llm\",limit=\"output\"} 50\n",
        "weir_cost_units_total{strategy=\"llm\",cost=\"output\",kind=\"used\"} 655\n",
        "weir_cost_units_total{strategy=\"llm\",cost=\"output\",kind=\"uncharged\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

/// The window has 1,000, and takes 100 more as a debt.
async fn what_is_above_the_debt_is_counted_exactly(store: StoreConfig) {
    let server = Server::ready(node("one", store));
    let mut client = server.client().await;
    client.should_allow(ask("one", 100, 100)).await.unwrap();
    let all = SettleRequest {
        costs: [("input".to_owned(), 2_500), ("output".to_owned(), 1_500)].into(),
        ..settle("one", 0)
    };
    for applied in [true, false] {
        let settled = client.settle(all.clone()).await.unwrap().into_inner();
        assert_eq!(settled.applied, applied);
        let charged: Vec<_> = settled.limits.iter().map(|limit| limit.charged).collect();
        assert_eq!(charged, [1_900, 1_100]);
    }
    let metrics = server.get("/metrics").1;
    // 2,500 less 100 that were charged at once, and less 1,900 that fit into the limit and its debt.
    for (cost, uncharged) in [("input", 500), ("output", 400)] {
        let line = format!(
            "weir_cost_units_total{{strategy=\"llm\",cost=\"{cost}\",kind=\"uncharged\"}} {uncharged}\n"
        );
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

#[tokio::test]
async fn what_is_above_the_debt_is_counted_exactly_on_memory() {
    what_is_above_the_debt_is_counted_exactly(stores::memory()).await;
}

#[tokio::test]
async fn what_is_above_the_debt_is_counted_exactly_on_redis() {
    let redis = RedisServer::start();
    what_is_above_the_debt_is_counted_exactly(on(&redis)).await;
}

#[tokio::test]
async fn each_node_says_what_was_used_on_all_of_them() {
    let redis = RedisServer::start();
    let start = |name: &str| Server::start_by_the_system(node(name, on(&redis)));
    let (one, two) = (start("one"), start("two"));
    load(&one).await;
    let mut client = two.client().await;
    client.should_allow(ShouldAllowRequest { consumer: "eve".to_owned(), ..ask("", 2, 3) }).await.unwrap();
    for server in [&one, &two] {
        let mut usage = usage_of(server).await;
        eventually_async(SOON, "the costs of both", async || {
            let answer = get(&mut usage, GetUsageRequest::default()).await;
            answer.series.iter().any(|series| series.outcome == "allowed" && series.costs == used(42, 658))
        })
        .await;
    }
    let address = two.grpc.to_string();
    let csv = weir(&["usage", "--csv", "--server", &address]);
    let csv = text(&csv.stdout);
    assert!(csv.contains(",llm,chat,allowed,0,658,output,tokens\n"), "{csv}");
    let page = weir(&["top", "--once", "--server", &address]);
    let page = text(&page.stdout);
    let line = page.lines().find(|line| line.contains("output")).unwrap_or_else(|| panic!("{page}"));
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!((cells[..4].to_vec(), cells[5]), (vec!["llm", "chat", "output", "tokens"], "658"), "{page}");
}
