//! The nodes of a deployment, as `ListNodes`, `weir nodes`, `weir top` and the page show them.

use serde_json::Value;
use weir_config::{Config, ServerConfig, StoreConfig, Topology};
use weir_proto::v1::{DeploymentNode, ListNodesRequest, NodeState};
use weir_units::Micros;
use weir_usage::{UsageConfig, with_usage};

use super::usage_of;
use crate::support::command::{Serve, text, weir};
use crate::support::server::{Server, config};
use crate::support::{RedisServer, SOON, eventually_async, redis_config, scratch};

fn start(redis: &RedisServer, name: &str) -> Server {
    let usage = UsageConfig { node: Some(name.to_owned()), ..UsageConfig::default() };
    let store = StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single));
    // Long enough to be seen: rows are written each second.
    let server = ServerConfig { drain_delay: Micros::from_secs(2), ..config().server };
    Server::start_by_the_system(with_usage(Config { store, server, ..config() }, usage))
}

async fn nodes(server: &Server) -> Vec<DeploymentNode> {
    usage_of(server).await.list_nodes(ListNodesRequest {}).await.unwrap().into_inner().nodes
}

fn states(nodes: &[DeploymentNode]) -> Vec<(&str, NodeState)> {
    nodes.iter().map(|node| (node.name.as_str(), node.state())).collect()
}

#[tokio::test]
async fn every_place_shows_the_same_nodes() {
    let redis = RedisServer::start();
    let (one, mut two) = (start(&redis, "one"), start(&redis, "two"));
    let both = [("one", NodeState::Serving), ("two", NodeState::Serving)];
    eventually_async(SOON, "both are known", async || states(&nodes(&one).await) == both).await;
    let all = nodes(&one).await;
    assert_eq!((&all[1].address, &*all[1].version), (&two.grpc.to_string(), env!("CARGO_PKG_VERSION")));
    assert!(all[0].files == all[1].files && all[0].ended_at.is_none(), "{all:?}");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    for node in &all {
        for at in [&node.started_at, &node.files_read_at] {
            assert!((now - at.as_ref().unwrap().seconds).abs() < 600, "{node:?}");
        }
    }
    // A node that is about to end, and one that has.
    two.terminate();
    let draining = [("one", NodeState::Serving), ("two", NodeState::Draining)];
    eventually_async(SOON, "it drains", async || states(&nodes(&one).await) == draining).await;
    tokio::task::spawn_blocking(move || two.ended().unwrap()).await.unwrap();
    let ended = [("one", NodeState::Serving), ("two", NodeState::Ended)];
    eventually_async(SOON, "it has ended", async || states(&nodes(&one).await) == ended).await;
    let address = one.grpc.to_string();
    let listed = text(&weir(&["nodes", "--server", &address]).stdout);
    let top = text(&weir(&["top", "--once", "--server", &address]).stdout);
    let (running, apart) = listed.split_once("\nended within the last hour\n").unwrap();
    assert!(running.contains("one") && running.contains("serving") && !running.contains("two"), "{listed}");
    assert!(apart.contains("two") && apart.contains("ended 20"), "{listed}");
    assert!(top.starts_with(&listed), "{top}\n{listed}");
    let json = weir(&["nodes", "--server", &address, "--output", "json"]);
    let json: Value = serde_json::from_str(&text(&json.stdout)).unwrap();
    let data: Value = serde_json::from_str(&one.get("/ui/data").1).unwrap();
    for place in 0..2 {
        assert_eq!(json["nodes"][place]["name"], data["nodes"][place]["name"]);
        assert_eq!(json["nodes"][place]["files"], data["nodes"][place]["files"]);
    }
    assert_eq!((&data["nodes"][0]["state"], &data["nodes"][0]["ended"]), (&"serving".into(), &Value::Null));
    assert!(data["nodes"][1]["ended"].as_i64().is_some_and(|at| (now - at).abs() < 600), "{data}");
    // An hour later, or so Redis says, nothing is left of it.
    let row = redis.keys().into_iter().find(|key| key.contains(":node:two:")).unwrap();
    let left: i64 = redis.query(&["TTL", &row]);
    assert!((3_500..=3_600).contains(&left), "{left}");
    redis.cli(&["DEL", &row]);
    assert_eq!(states(&nodes(&one).await), [("one", NodeState::Serving)]);
}

/// A node that crashed can say nothing more. It has ended because it writes no more.
#[tokio::test]
async fn a_node_that_crashed_has_ended() {
    let redis = RedisServer::start();
    let folder = scratch::dir("roster-");
    let strategies =
        "strategies: { s: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/s } }] } }";
    let text = format!(
        "usage: {{ node: lost }}\nstore: {{ redis: {{ nodes: ['{}'] }} }}\n{strategies}\n",
        redis.url()
    );
    let file = scratch::file(folder.path(), "weir.yaml", text);
    let lost = Serve::start(&["--config", file.to_str().unwrap()]);
    let one = start(&redis, "one");
    let both = [("lost", NodeState::Serving), ("one", NodeState::Serving)];
    eventually_async(SOON, "both are known", async || states(&nodes(&one).await) == both).await;
    lost.stop("KILL");
    let up = redis.keys().into_iter().find(|key| key.contains(":up:lost:")).unwrap();
    let left: i64 = redis.query(&["TTL", &up]);
    assert!((1..=30).contains(&left), "{left}");
    // The time passes.
    redis.cli(&["DEL", &up]);
    let ended = [("one", NodeState::Serving), ("lost", NodeState::Ended)];
    let all = nodes(&one).await;
    assert!(states(&all) == ended && all[1].ended_at.is_some(), "{all:?}");
}
