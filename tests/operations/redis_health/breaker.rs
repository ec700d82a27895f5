//! The breaker of a node: it opens soon, answers by policy at once, leaves healthy nodes alone, and closes by itself.

use std::time::Duration;

use tonic::Code;
use weir_config::RedisConfig;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_units::Micros;

use super::{of_node, on, says, single};
use crate::support::server::{Server, ask_under};
use crate::support::{Cluster, RedisServer, SOON, Stopwatch, eventually_async, redis_config};

type Client = RateLimitServiceClient<tonic::transport::Channel>;

/// A second, so that a call that waited for it is told from one that did not, on a slow machine as well.
const DEADLINE: Micros = Micros::from_secs(1);

fn state(server: &Server, redis: &RedisServer) -> (Option<String>, Option<String>) {
    let of = |metric| of_node(server, metric, &redis.addr());
    (of("weir_store_breaker_open"), of("weir_store_breaker_opened_total"))
}

fn is(open: &str, opened: &str) -> (Option<String>, Option<String>) {
    (Some(open.to_owned()), Some(opened.to_owned()))
}

async fn ask(client: &mut Client, resource: &str) -> Result<bool, Code> {
    let answer = client.should_allow(ask_under("failing", resource, "c")).await;
    answer.map(|answer| answer.into_inner().allowed).map_err(|status| status.code())
}

fn start(redis: RedisConfig) -> Server {
    let config = on(RedisConfig { deadline: DEADLINE, connect_timeout: DEADLINE, ..redis });
    Server::start_by_the_system(weir_config::Config { rules: rules(), ..config })
}

fn rules() -> weir_core::strategy::Rules {
    use weir_core::algorithm::Algorithm;
    use weir_core::strategy::{FailurePolicy, Field, Resources, Rules};
    let limit = Algorithm::fixed_window(1_000_000, Micros::from_secs(86_400), false, false).unwrap();
    let each: &[Field] = &[Field::Resource];
    let limits = [("each", each, limit)];
    let strategy = crate::support::rules::strategy("failing", &limits, FailurePolicy::Error);
    Rules::new(vec![strategy], Resources::default())
}

#[tokio::test]
async fn a_frozen_server_is_asked_no_more_until_it_answers_probes() {
    let redis = RedisServer::start();
    let server = start(single(&redis));
    let mut client = server.client().await;
    eventually_async(SOON, "it decides", async || ask(&mut client, "r").await == Ok(true)).await;
    eventually_async(SOON, "it is probed", async || state(&server, &redis) == is("0", "0")).await;
    redis.freeze();
    // One call is enough: probes find the rest.
    assert_eq!(ask(&mut client, "r").await, Err(Code::Unavailable));
    eventually_async(SOON, "it opens", async || state(&server, &redis) == is("1", "1")).await;
    let metrics = server.get("/metrics").1;
    assert!(metrics.contains("\nweir_store_breaker_openings_total 1\n"), "{metrics}");
    says(&server, &["degraded: Redis node", &redis.addr()]);
    let watch = Stopwatch::start();
    for _ in 0..20 {
        assert_eq!(ask(&mut client, "r").await, Err(Code::Unavailable));
    }
    let took = watch.elapsed();
    assert!(took < Duration::from_secs(5), "20 calls without a wait for Redis took {took:?}");
    redis.thaw();
    eventually_async(SOON, "it closes", async || state(&server, &redis) == is("0", "1")).await;
    eventually_async(SOON, "it decides again", async || ask(&mut client, "r").await == Ok(true)).await;
}

/// Probes that only read would succeed.
#[tokio::test]
async fn a_server_that_refuses_writes_is_asked_no_more() {
    let redis = RedisServer::start();
    let server = start(single(&redis));
    let mut client = server.client().await;
    eventually_async(SOON, "it decides", async || ask(&mut client, "r").await == Ok(true)).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    eventually_async(SOON, "it opens", async || {
        assert!(ask(&mut client, "new").await.is_err());
        state(&server, &redis) == is("1", "1")
    })
    .await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    eventually_async(SOON, "it closes", async || state(&server, &redis) == is("0", "1")).await;
    eventually_async(SOON, "it decides again", async || ask(&mut client, "r").await == Ok(true)).await;
}

/// A key that is something else says nothing of its node.
#[tokio::test]
async fn errors_of_a_key_open_nothing() {
    let redis = RedisServer::start();
    let server = start(single(&redis));
    let mut client = server.client().await;
    eventually_async(SOON, "it decides", async || ask(&mut client, "bad").await == Ok(true)).await;
    let key = redis.state_keys().into_iter().find(|key| key.contains("bad")).unwrap();
    redis.cli(&["DEL", &key]);
    redis.cli(&["LPUSH", &key, "something else"]);
    for _ in 0..100 {
        assert!(ask(&mut client, "bad").await.is_err());
    }
    assert_eq!(ask(&mut client, "good").await, Ok(true));
    assert_eq!(state(&server, &redis), is("0", "0"));
}

/// While one shard is away, decisions on the others wait for nothing of it.
#[tokio::test]
async fn the_other_nodes_of_a_cluster_are_asked_as_before() {
    let cluster = Cluster::start(3, 0);
    let server = start(redis_config(cluster.urls(), weir_config::Topology::Cluster));
    let mut client = server.client().await;
    let resources: Vec<String> = (0..30).map(|number| format!("r{number}")).collect();
    for resource in &resources {
        eventually_async(SOON, "it decides", async || ask(&mut client, resource).await == Ok(true)).await;
    }
    let keys = cluster.all_keys();
    let key = |resource: &String| keys.keys().find(|key| key.ends_with(&format!("|R{resource}"))).unwrap();
    let frozen = &cluster.nodes()[0];
    let is_lost = |resource: &&String| cluster.primary_of_key(key(resource)).port() == frozen.port();
    let (lost, healthy): (Vec<&String>, Vec<&String>) = resources.iter().partition(is_lost);
    assert!(!lost.is_empty() && !healthy.is_empty());
    frozen.freeze();
    eventually_async(SOON, "it opens", async || {
        assert!(ask(&mut client, lost[0]).await.is_err());
        state(&server, frozen) == is("1", "1")
    })
    .await;
    for resource in healthy {
        assert_eq!(ask(&mut client, resource).await, Ok(true), "{resource}");
    }
    for node in &cluster.nodes()[1..] {
        assert_eq!(state(&server, node), is("0", "0"));
    }
    frozen.thaw();
    eventually_async(SOON, "it closes", async || state(&server, frozen) == is("0", "1")).await;
}
