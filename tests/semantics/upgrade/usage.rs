//! The usage that nodes share: keys as a release wrote them, read by this version.
//!
//! It is no script: values are written whole and read by all nodes, so that a release only has to write and read the same.

use std::path::Path;

use serde_json::{Value as Json, json};
use weir_config::{Config, RedisConfig, StoreConfig, Topology};
use weir_proto::v1::usage_service_client::UsageServiceClient;
use weir_proto::v1::{GetUsageRequest, ShouldAllowRequest, TopConsumersRequest};
use weir_units::Micros;
use weir_usage::{UsageConfig, with_usage};

use super::RELEASES;
use super::keys::{dump, restore};
use super::release::folder;
use crate::support::server::{BASE, Server, ask, ask_under, config};
use crate::support::stores::redis_config;
use crate::support::{RedisServer, SOON, eventually, eventually_async};

/// Placeholder of the start of a process and its number.
const INCARNATION: &str = "INCARNATION";

/// After the minute of the calls, which other nodes see when it is over.
const LATER: Micros = Micros(BASE.0 + 61_000_000);

#[tokio::test]
async fn usage_is_written_and_read_as_before() {
    let redis = RedisServer::start();
    let keys = written(&redis).await;
    let answers = read_again(&redis, &keys).await;
    assert_eq!(
        answers["nodes"],
        json!([["new", "old"], ["new", "old"]]),
        "the usage of the other process is read: {answers}"
    );
    let lines: Vec<String> = keys.iter().map(Json::to_string).collect();
    let text = format!("{{ \"answers\": {answers},\n\"keys\": [\n{}\n] }}\n", lines.join(",\n"));
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upgrade/usage");
    std::fs::create_dir_all(&into).unwrap();
    std::fs::write(into.join("usage.json"), &text).unwrap();
    for release in RELEASES {
        let recorded = std::fs::read_to_string(folder(release).join("usage.json")).unwrap();
        assert_eq!(text, recorded, "{release} writes other keys of usage");
        let old: Json = serde_json::from_str(&recorded).unwrap();
        let again = read_again(&redis, old["keys"].as_array().unwrap()).await;
        assert_eq!(again, old["answers"], "{release}'s usage is read otherwise");
    }
}

/// Returns the answer of a node about these keys of a process that has ended.
async fn read_again(redis: &RedisServer, keys: &[Json]) -> Json {
    redis.flush_all();
    let mut connection = redis.connection();
    for key in keys {
        let began = key.to_string().replace(INCARNATION, &format!("{:x}-1", BASE.0));
        restore(&mut connection, &serde_json::from_str(&began).unwrap());
    }
    read(redis).await
}

fn node(name: &str, redis: &RedisServer) -> Server {
    let usage = UsageConfig { node: Some(name.to_owned()), sample: 1, ..UsageConfig::default() };
    let store: RedisConfig = redis_config(vec![redis.url()], Topology::Single);
    Server::ready(with_usage(Config { store: StoreConfig::Redis(store), ..config() }, usage))
}

/// The keys of a node that was asked some questions.
async fn written(redis: &RedisServer) -> Vec<Json> {
    let server = node("old", redis);
    let mut client = server.client().await;
    for (question, cost) in [
        (ask_under("open", "burst/b", "bob"), 1),
        (ask_under("open", "burst/b", "bob"), 2),
        (ask_under("open", "x", "eve"), 3),
        (ask("burst/a", "bob"), 1),
        (ask("burst/a", "bob"), 1_000),
    ] {
        client.should_allow(ShouldAllowRequest { cost: Some(cost), ..question }).await.unwrap();
    }
    // What is asked for is counted, at the time of the calls.
    let mut usage = UsageServiceClient::new(server.channel().await);
    let all_are_counted = async || {
        let answer = usage.get_usage(GetUsageRequest::default()).await.unwrap().into_inner();
        usage.top_consumers(TopConsumersRequest::default()).await.unwrap();
        answer.series.iter().map(|series| series.calls).sum::<u64>() == 5
    };
    eventually_async(SOON, "the calls are counted", all_are_counted).await;
    server.clock.set(LATER);
    let is_minute = |key: &String| key.contains(":{usage}:d:");
    // The minute of consumers is written last.
    eventually(SOON, "all keys of usage", || redis.keys().iter().any(is_minute));
    drop(client);
    let own = format!("{:x}-{:x}", BASE.0, std::process::id());
    let keys = Json::Array(dump(redis, &mut redis.connection())).to_string().replace(&own, INCARNATION);
    let mut keys: Vec<Json> = serde_json::from_str(&keys).unwrap();
    keys.retain(|key| key["key"].as_str().unwrap().contains(":{usage}:"));
    keys
}

/// Returns the answer of a node of this version about these keys.
async fn read(redis: &RedisServer) -> Json {
    let server = node("new", redis);
    server.clock.set(LATER);
    let mut usage = UsageServiceClient::new(server.channel().await);
    let answer = usage.get_usage(GetUsageRequest::default()).await.unwrap().into_inner();
    let mut totals: Vec<Json> = answer
        .series
        .iter()
        .map(|it| json!([it.strategy, it.resource_pattern, it.outcome, it.calls, it.cost]))
        .collect();
    totals.sort_by_key(Json::to_string);
    let top = usage.top_consumers(TopConsumersRequest::default()).await.unwrap().into_inner();
    let mut consumers: Vec<Json> = top
        .consumers
        .iter()
        .map(|it| json!([it.consumer, it.strategy, it.allowed, it.calls, it.error]))
        .collect();
    consumers.sort_by_key(Json::to_string);
    json!({ "nodes": [answer.nodes, top.nodes], "totals": totals, "calls": top.calls, "consumers": consumers })
}
