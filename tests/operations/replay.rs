//! `weir simulate --replay`: what a real server has decided and logged, under its own and another configuration; and the
//! logs that are refused.

mod costs;
mod named;
mod refused;

use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tonic::transport::Channel;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    CancelReservationRequest, DebitRequest, RefundRequest, ReserveRequest, ShouldAllowRequest,
};
use weir_units::Micros;

use crate::support::command::{text, weir};
use crate::support::server::{BASE, Server};
use crate::support::stores;

/// Strategies of all engines. `{n}` is a number that two configurations differ in.
const RULES: &str = "
strategies:
  bucket: { limits: [{ name: each, per: [resource, consumer], token_bucket: { rate: 30/1m, burst: {n} } }] }
  window: { limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: {n}, window: 5s } }] }
  log: { limits: [{ name: each, per: [consumer, resource], sliding_log: { limit: {n}, window: 4s } }] }
  slots: { limits: [{ name: each, per: [resource, consumer], bucketed_window: { limit: {n}, window: 4s, buckets: 4 } }] }
  sliding: { limits: [{ name: each, per: [resource, consumer], sliding_window: { limit: {n}, window: 3s } }] }
  two:
    limits:
      - { name: all, per: [resource], fixed_window: { limit: 20, window: 10s } }
      - { name: each, per: [resource, consumer, region], token_bucket: { rate: 1/1s, burst: {n} } }
resources: [{ match: api/*, strategy: bucket }]
overrides: [{ consumer: bob-1, strategy: window, limits: { each: { fixed_window: { limit: 2, window: 5s } } } }]
access: { deny: [bob-0] }
";

struct Live {
    folder: tempfile::TempDir,
}

impl Live {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("decisions.jsonl")
    }

    /// A file with the rules, where `n` is the number.
    fn config(&self, n: u64) -> PathBuf {
        let file = self.folder.path().join(format!("{n}.yaml"));
        std::fs::write(&file, RULES.replace("{n}", &n.to_string())).unwrap();
        file
    }

    /// A server that logs `keys`.
    fn server(&self, n: u64, keys: &str, store: StoreConfig) -> Server {
        let log = self.log();
        let log = format!("log: {{ decisions: {{ keys: {keys}, file: {} }} }}", log.display());
        let text = format!("{}\n{log}\n", RULES.replace("{n}", &n.to_string()));
        let config = Config::parse(&text, "test", &ConfigOverrides::default()).unwrap();
        Server::ready(Config { store, ..config })
    }
}

/// The result of a replay, as JSON.
fn replay(config: &Path, args: &[&str]) -> Value {
    let (result, notes) = replay_noted(config, args);
    assert_eq!(notes, "", "{args:?}");
    result
}

/// The same with what is said on stderr.
fn replay_noted(config: &Path, args: &[&str]) -> (Value, String) {
    let args = [&["simulate", "--config", config.to_str().unwrap(), "--output", "json"], args].concat();
    let out = weir(&args);
    let notes = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {notes}");
    (serde_json::from_slice(&out.stdout).unwrap(), notes)
}

fn sum(result: &Value, name: &str) -> u64 {
    result["strategies"].as_array().unwrap().iter().map(|row| row[name].as_u64().unwrap()).sum()
}

/// Random calls at random times, the same for the same seed. Says of each plain one whether it was allowed.
async fn calls(server: &Server, client: &mut RateLimitServiceClient<Channel>, prefix: &str) -> Vec<bool> {
    let mut random = SmallRng::seed_from_u64(7);
    let (mut time, mut allowed) = (BASE.0, Vec::new());
    for index in 0..1_500 {
        time += random.random_range(0..60_000);
        server.clock.set(Micros(time));
        let strategy = ["bucket", "window", "log", "slots", "sliding", "two", ""][random.random_range(0..7)];
        let resource = format!(
            "{}{prefix}/{}",
            if strategy.is_empty() { "api/" } else { "" },
            random.random_range(0..2)
        );
        let (consumer, strategy) = (format!("bob-{}", random.random_range(0..4)), strategy.to_owned());
        let attributes = [("region".to_owned(), "eu".to_owned())].into();
        let cost = Some(random.random_range(0..3));
        match random.random_range(0..20) {
            0 => {
                let request = RefundRequest {
                    resource,
                    consumer,
                    strategy,
                    attributes,
                    cost: Some(1),
                    ..RefundRequest::default()
                };
                client.refund(request).await.unwrap();
            }
            1 => {
                let id = format!("bill-{index}");
                let request = DebitRequest {
                    resource,
                    consumer,
                    strategy,
                    attributes,
                    cost: Some(1),
                    id,
                    ..DebitRequest::default()
                };
                client.debit(request).await.unwrap();
            }
            2 => {
                let (strategy, id) = ("bucket".to_owned(), format!("reserved-{}", index % 3));
                let max_wait = Some(prost_types::Duration { seconds: 3, nanos: 0 });
                let request = ReserveRequest {
                    resource,
                    consumer,
                    strategy,
                    attributes,
                    cost: Some(1),
                    max_wait,
                    id,
                    inline: None,
                };
                client.reserve(request).await.unwrap();
            }
            3 => {
                let (strategy, id) = ("bucket".to_owned(), format!("reserved-{}", index % 3));
                let request =
                    CancelReservationRequest { resource, consumer, strategy, attributes, id, inline: None };
                client.cancel_reservation(request).await.unwrap();
            }
            kind => {
                let at_most = kind == 4;
                let request = ShouldAllowRequest {
                    resource,
                    consumer,
                    strategy,
                    attributes,
                    cost,
                    at_most,
                    ..ShouldAllowRequest::default()
                };
                allowed.push(client.should_allow(request).await.unwrap().into_inner().allowed);
            }
        }
    }
    allowed
}

#[tokio::test]
async fn the_same_configuration_would_have_decided_the_same() {
    let live = Live::new();
    let mut server = live.server(5, "1", stores::memory());
    let allowed = calls(&server, &mut server.client().await, "same").await;
    server.stop();
    server.ended().unwrap();
    let result = replay(&live.config(5), &["--replay", live.log().to_str().unwrap()]);
    assert_eq!(result["decisions"], 1_500);
    for name in ["now_denied", "now_allowed", "granted_otherwise", "refused"] {
        assert_eq!(sum(&result, name), 0, "{name}: {result}");
    }
    assert!(sum(&result, "compared") > allowed.len() as u64);
    assert!(allowed.contains(&true) && allowed.contains(&false));
}

/// The replay of another configuration says what a server with it decides of the same calls.
#[tokio::test]
async fn another_configuration_decides_as_its_server_would() {
    let (live, other) = (Live::new(), Live::new());
    let (mut one, mut two) = (live.server(5, "1", stores::memory()), other.server(3, "1", stores::memory()));
    calls(&one, &mut one.client().await, "other").await;
    calls(&two, &mut two.client().await, "other").await;
    for server in [&mut one, &mut two] {
        server.stop();
        server.ended().unwrap();
    }
    let read = |live: &Live| -> Vec<Value> {
        let text = std::fs::read_to_string(live.log()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let admitted = |line: &Value| match line["outcome"].as_str().unwrap() {
        "allowed" | "peeked" | "repeated" => Some(true),
        "denied" | "never" | "deny_list" => Some(false),
        _ => None,
    };
    let (mut now_denied, mut now_allowed, mut otherwise) = (0_u64, 0_u64, 0_u64);
    for (one, two) in read(&live).iter().zip(read(&other)) {
        now_denied += u64::from((admitted(one), admitted(&two)) == (Some(true), Some(false)));
        now_allowed += u64::from((admitted(one), admitted(&two)) == (Some(false), Some(true)));
        let both = (admitted(one), admitted(&two)) == (Some(true), Some(true));
        let is_part = one["operation"] == "at_most" && one["granted"] != two["granted"];
        otherwise += u64::from(both && is_part);
    }
    let log = live.log();
    let args = ["--replay", log.to_str().unwrap()];
    let result = replay(&live.config(3), &args);
    assert!(now_denied > 20 && otherwise > 0, "{now_denied} {otherwise}");
    let said = ["now_denied", "now_allowed", "granted_otherwise"].map(|name| sum(&result, name));
    assert_eq!(said, [now_denied, now_allowed, otherwise]);
    assert_eq!(result["examples"].as_array().unwrap().len(), 10);
    // The same bytes each time, and one strategy alone is the same as among others.
    assert_eq!(result, replay(&live.config(3), &args));
    let window = replay(&live.config(3), &[&args[..], &["--strategy", "window"]].concat());
    let of_all = result["strategies"].as_array().unwrap().iter().find(|row| row["strategy"] == "window");
    assert_eq!(window["strategies"].as_array().unwrap()[..], [of_all.unwrap().clone()]);
}

/// On Redis' own clock, by clients that call at the same time.
#[tokio::test]
async fn redis_would_have_decided_the_same() {
    let live = Live::new();
    let log = format!("log: {{ decisions: {{ keys: 1, file: {} }} }}", live.log().display());
    let text = format!("{}\n{log}\n", RULES.replace("{n}", "5"));
    let config = Config::parse(&text, "test", &ConfigOverrides::default()).unwrap();
    let mut server = Server::start_by_the_system(Config { store: stores::redis(), ..config });
    crate::support::eventually(crate::support::SOON, "ready", || server.get("/readyz").0 == 200);
    let prefix = live.folder.path().display().to_string();
    let mut tasks = Vec::new();
    for task in 0..4 {
        let (mut client, prefix) = (server.client().await, prefix.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..50 {
                for strategy in ["bucket", "window", "log", "slots", "two"] {
                    let request = ShouldAllowRequest {
                        resource: prefix.clone(),
                        consumer: format!("bob-{}", 1 + task % 2),
                        strategy: strategy.to_owned(),
                        attributes: [("region".to_owned(), "eu".to_owned())].into(),
                        ..ShouldAllowRequest::default()
                    };
                    client.should_allow(request).await.unwrap();
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    server.stop();
    server.ended().unwrap();
    let result = replay(&live.config(5), &["--replay", live.log().to_str().unwrap()]);
    assert_eq!(sum(&result, "compared"), 1_000);
    assert_eq!((sum(&result, "now_denied"), sum(&result, "now_allowed")), (0, 0), "{result}");
}

#[tokio::test]
async fn a_strategy_that_is_gone_and_rotated_files() {
    let live = Live::new();
    let mut server = live.server(5, "1", stores::memory());
    calls(&server, &mut server.client().await, "gone").await;
    server.stop();
    server.ended().unwrap();
    let all = std::fs::read_to_string(live.log()).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    let part = |name: &str, lines: &[&str]| {
        let file = live.folder.path().join(name);
        std::fs::write(&file, lines.join("\n")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    // Of rotated files the oldest may be gone.
    let (older, newer) = (part("older", &lines[500..900]), part("newer", &lines[900..]));
    let (result, notes) = replay_noted(&live.config(5), &["--replay", &older, "--replay", &newer]);
    assert_eq!((&result["decisions"], &result["earlier_lines"]), (&1_000.into(), &500.into()));
    assert!(notes.contains("line 1 is not the first of its process: 500 earlier lines"), "{notes}");
    let only = live.folder.path().join("only.yaml");
    std::fs::write(&only, "strategies: { log: { limits: [{ name: each, per: [consumer, resource], uniform: { interval: 1s } }] } }")
        .unwrap();
    let (result, _) = replay_noted(&only, &["--replay", &older, "--replay", &newer]);
    for row in result["strategies"].as_array().unwrap() {
        let is_there = row["strategy"] == "log";
        assert_eq!(row["compared"].as_u64().unwrap() > 0, is_there, "{row}");
        assert_eq!(row["refused"].as_u64().unwrap() > 0, !is_there, "{row}");
    }
}
