//! Each outcome of a decision has its column on the page, and what columns and cards say adds up to the metrics.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_config::Config;
use weir_proto::v1::ShouldAllowRequest;
use weir_testing::Chromium;

use super::open;
use crate::support::server::{Server, ask, ask_under};
use crate::support::{RedisServer, SOON, eventually, eventually_async};

const CONFIG: &str = "
server: { control: true, workers: 1 }
usage: { node: node-1, shared: false }
access: { deny: [mallory], allow: [keeper] }
strategies:
  s:
    limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 2 }, ban: { after: 2, within: 1m, for: 10m } }]
    on_store_failure: error
  open: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 2 } }], on_store_failure: allow }
  closed: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 2 } }], on_store_failure: deny }
resources: [{ match: x, strategy: s }]
";

/// Calls of each outcome, and what the page must show of them.
const OUTCOMES: [(&str, &str); 11] = [
    ("allowed", "allowed"),
    ("denied", "denied"),
    ("never", "denied"),
    ("deny_list", "by deny list"),
    ("allow_list", "by allow list"),
    ("degraded_allowed", "by policy"),
    ("degraded_denied", "by policy"),
    ("error", "errors"),
    ("peeked", "peeked"),
    ("repeated", "repeated"),
    ("banned", "banned"),
];

/// A service that has decided at least one call of each outcome.
async fn served(redis: &RedisServer) -> Server {
    let text = format!("{CONFIG}store: {{ redis: {{ nodes: ['{}'], deadline: 500ms }} }}\n", redis.url());
    let config = Config::parse(&text, "weir.yaml", &weir::features::overrides());
    let server = Server::start_by_the_system(config.unwrap_or_else(|errors| panic!("{errors}")));
    eventually(SOON, "it is ready", || server.get("/readyz").1.starts_with("ready"));
    let mut client = server.client().await;
    let with_id = ShouldAllowRequest { id: "one".to_owned(), ..ask("x", "alice") };
    for request in [
        with_id.clone(),
        with_id,
        ask("x", "keeper"),
        ask("x", "mallory"),
        ShouldAllowRequest { cost: Some(0), ..ask("x", "bob") },
        ShouldAllowRequest { cost: Some(3), ..ask("x", "bob") },
    ] {
        client.should_allow(request).await.unwrap();
    }
    eventually_async(SOON, "eve is banned", async || {
        client.should_allow(ask("x", "eve")).await.unwrap();
        counted(&server)["banned"] > 0
    })
    .await;
    redis.freeze();
    for strategy in ["open", "closed"] {
        client.should_allow(ask_under(strategy, "x", "bob")).await.unwrap();
    }
    client.should_allow(ask("x", "bob")).await.unwrap_err();
    redis.thaw();
    server
}

/// The decisions on the metrics page, by outcome.
fn counted(server: &Server) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in server.get("/metrics").1.lines() {
        let Some(labels) = line.strip_prefix("weir_decisions_total{") else { continue };
        let outcome = labels.split("outcome=\"").nth(1).unwrap().split('"').next().unwrap();
        let calls: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        *sums.entry(outcome.to_owned()).or_default() += calls;
    }
    sums
}

#[tokio::test]
async fn columns_cards_and_metrics_add_up_over_all_outcomes() {
    let redis = RedisServer::start();
    let server = served(&redis).await;
    let sums = counted(&server);
    let named: Vec<&str> = OUTCOMES.iter().map(|(outcome, _)| *outcome).collect();
    for (outcome, calls) in &sums {
        assert!(named.contains(&&**outcome), "{outcome} has no column");
        assert!(*calls > 0, "nothing was {outcome}, so that this test says nothing of it: {sums:?}");
    }
    let Some(mut browser) = Chromium::start() else { return };
    let all: u64 = sums.values().sum();
    eventually(SOON, "what was counted is read", || {
        let data: Value = serde_json::from_str(&server.get("/ui/data").1).unwrap();
        data["series"].as_array().unwrap().iter().map(|one| one["calls"].as_u64().unwrap()).sum::<u64>()
            == all
    });
    open(&mut browser, &server, 1440, "light");
    let mut columns = BTreeMap::<&str, u64>::new();
    for (outcome, column) in OUTCOMES {
        *columns.entry(column).or_default() += sums[outcome];
    }
    let shown = table(&mut browser);
    assert_eq!(shown["calls"], all, "{shown:?}");
    for (column, calls) in &columns {
        assert_eq!(shown[*column], *calls, "{column}: {shown:?} {sums:?}");
    }
    assert!(!shown.contains_key("other"), "{shown:?}");
    let text = |browser: &mut Chromium, id: &str| {
        let text = browser.evaluate(&format!("document.getElementById('{id}').innerText"));
        text.as_str().unwrap().to_owned()
    };
    let denied = columns["denied"] + columns["by deny list"] + columns["banned"];
    let by_policy = columns["by policy"] + columns["errors"];
    let free = columns["peeked"] + columns["repeated"];
    assert_eq!(
        text(&mut browser, "denied"),
        format!(
            "{denied} of {}, last hour; {} by lists; {} banned",
            all - free,
            sums["deny_list"],
            sums["banned"]
        )
    );
    assert_eq!(text(&mut browser, "policy"), by_policy.to_string());
    assert!(text(&mut browser, "errors").ends_with(&format!("{} errors", sums["error"])));
    assert!(text(&mut browser, "free").ends_with(&format!("; {free} of the hour without a charge")));
    of_a_later_version(&mut browser);
}

/// The sums of the columns of the table of strategies, by their titles.
fn table(browser: &mut Chromium) -> BTreeMap<String, u64> {
    let titles = "[...document.querySelectorAll('#rows th')].map(it => it.textContent)";
    let rows = "[...document.querySelectorAll('#rows tbody tr')].map(row => [...row.cells].map(it => it.textContent))";
    let titles: Vec<String> = serde_json::from_value(browser.evaluate(titles)).unwrap();
    let rows: Vec<Vec<String>> = serde_json::from_value(browser.evaluate(rows)).unwrap();
    let mut sums = BTreeMap::new();
    for (title, cell) in rows.iter().flat_map(|row| titles.iter().zip(row)) {
        if let Ok(number) = cell.parse::<u64>() {
            *sums.entry(title.clone()).or_default() += number;
        }
    }
    sums
}

/// An outcome that this version does not know, of another node, is not booked as one that it knows.
fn of_a_later_version(browser: &mut Chromium) {
    let before = table(browser);
    browser.evaluate("data.series.find(one => one.outcome === 'allowed').outcome = 'postponed', draw(), 0");
    let after = table(browser);
    assert_eq!(after["other"], before["allowed"] - after["allowed"]);
    assert!(after["other"] > 0 && after["by policy"] == before["by policy"], "{after:?}");
}
