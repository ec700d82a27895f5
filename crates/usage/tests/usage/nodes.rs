//! Several nodes on one Redis: each answers for all of them, to the call.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_config::{Config, RedisConfig, StoreConfig, Topology};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{GetUsageRequest, Reason, ShouldAllowRequest, ShouldAllowResponse, TopConsumersRequest};
use weir_usage::{UsageConfig, with_usage};

use super::{Totals, get, key, totals, usage_of};
use crate::support::server::{Server, ask, ask_under, config};
use crate::support::{Cluster, RedisServer, SOON, eventually_async, redis_config};

fn node(name: &str, nodes: Vec<String>, topology: Topology) -> Config {
    let usage = UsageConfig { node: Some(name.to_owned()), sample: 1, ..UsageConfig::default() };
    // A call that Redis does not answer is over soon.
    let redis = RedisConfig { deadline: weir_units::Micros(200_000), ..redis_config(nodes, topology) };
    with_usage(Config { store: StoreConfig::Redis(redis), ..config() }, usage)
}

/// Counts of a caller about its own calls.
#[derive(Default)]
struct Counted(Totals);

impl Counted {
    fn add(
        &mut self,
        strategy: &str,
        request: &ShouldAllowRequest,
        answer: Result<ShouldAllowResponse, tonic::Status>,
    ) {
        let outcome = match answer {
            Ok(answer) => match (answer.reason(), answer.allowed) {
                (Reason::Ok, _) => "allowed",
                (Reason::Limited, _) => "denied",
                (Reason::Never, _) => "never",
                (Reason::StoreFailure, true) => "degraded_allowed",
                (Reason::StoreFailure, false) => "degraded_denied",
                (reason, _) => panic!("{reason:?}"),
            },
            Err(_) => "error",
        };
        let pattern = if request.resource.starts_with("burst/") { "burst/*" } else { "" };
        let total = self.0.entry(key(strategy, pattern, outcome)).or_default();
        *total = (total.0 + 1, total.1 + request.cost.unwrap_or(1));
    }

    /// Some calls of each kind on each node.
    async fn load(&mut self, servers: &[&Server], rounds: usize) {
        for server in servers {
            let mut client = RateLimitServiceClient::new(server.channel().await);
            for round in 0..rounds {
                let consumer = format!("c{}", round % 5);
                for (strategy, request) in [
                    ("burst", ask("burst/a", &consumer)),
                    ("burst", ShouldAllowRequest { cost: Some(9), ..ask("burst/a", &consumer) }),
                    ("open", ShouldAllowRequest { cost: Some(2), ..ask_under("open", "burst/b", &consumer) }),
                    ("closed", ask_under("closed", "elsewhere", &consumer)),
                ] {
                    let answer = client.should_allow(request.clone()).await;
                    self.add(strategy, &request, answer.map(tonic::Response::into_inner));
                }
            }
        }
    }

    /// Every node says the same, and says of whom.
    async fn is_what_nodes_say(&self, servers: &[&Server], names: &[&str]) {
        for server in servers {
            let mut usage = usage_of(server).await;
            let mut last = BTreeMap::new();
            let agrees = async || {
                let answer = get(&mut usage, GetUsageRequest::default()).await;
                last = totals(&answer);
                last == self.0 && answer.incomplete.is_empty() && answer.nodes == names
            };
            let seen = tokio::time::timeout(SOON, eventually_async(SOON, "the totals", agrees)).await;
            assert!(seen.is_ok(), "{last:?}, not {:?}", self.0);
        }
    }
}

#[tokio::test]
async fn each_node_answers_for_all_across_an_outage_and_a_restart() {
    let redis = RedisServer::start();
    let start = |name: &str| Server::start_by_the_system(node(name, vec![redis.url()], Topology::Single));
    let (one, two, mut three) = (start("one"), start("two"), start("three"));
    let names = ["one", "three", "two"];
    let mut counted = Counted::default();
    counted.load(&[&one], 20).await;
    counted.load(&[&one, &two, &three], 10).await;
    counted.is_what_nodes_say(&[&one, &two, &three], &names).await;

    // Without Redis policies answer, which is counted too. What was written is lost with this Redis.
    redis.kill();
    let outage = tokio::time::Instant::now();
    while outage.elapsed() < Duration::from_secs(5) {
        counted.load(&[&one, &two, &three], 2).await;
    }
    let mut usage = usage_of(&one).await;
    let alone = get(&mut usage, GetUsageRequest::default()).await;
    assert_eq!(alone.nodes, ["one"]);
    assert!(!alone.incomplete.is_empty());
    redis.restart();
    counted.load(&[&one, &two, &three], 5).await;
    counted.is_what_nodes_say(&[&one, &two, &three], &names).await;
    let degraded = |outcome: &str| counted.0.keys().any(|(_, _, counted)| counted == outcome);
    assert!(degraded("degraded_allowed") && degraded("degraded_denied") && degraded("error"));

    // A Redis that only refuses writes keeps what it has, and gets the rest afterwards.
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let refused = tokio::time::Instant::now();
    while refused.elapsed() < Duration::from_secs(3) {
        counted.load(&[&one, &two, &three], 2).await;
    }
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    counted.load(&[&one, &two, &three], 1).await;
    counted.is_what_nodes_say(&[&one, &two, &three], &names).await;

    // A node ends, writes what it has counted last, and begins again under its name.
    counted.load(&[&three], 3).await;
    three.stop();
    let ended = tokio::task::spawn_blocking(move || three.ended()).await.unwrap();
    assert_eq!(ended, Ok(()));
    let three = start("three");
    counted.load(&[&three, &two], 5).await;
    counted.is_what_nodes_say(&[&one, &two, &three], &names).await;
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let by_second = get(&mut usage, GetUsageRequest { step: seconds(1), ..GetUsageRequest::default() }).await;
    assert_eq!(totals(&by_second), counted.0, "the points add up to the same");

    for name in redis.keys() {
        // One that has just expired is gone.
        assert_ne!(redis.pttl(&name), -1, "{name} expires");
        if name.contains("usage") {
            assert!(name.starts_with("weir:{usage}:"), "{name}");
        }
    }
}

#[tokio::test]
async fn one_node_counts_alike_on_a_cluster() {
    let cluster = Cluster::start(3, 0);
    let start = |name: &str| Server::start_by_the_system(node(name, cluster.urls(), Topology::Cluster));
    let (one, two) = (start("one"), start("two"));
    for server in [&one, &two] {
        crate::support::eventually(SOON, "ready", || server.get("/readyz").0 == 200);
    }
    let mut counted = Counted::default();
    counted.load(&[&one, &two], 10).await;
    counted.is_what_nodes_say(&[&one, &two], &["one", "two"]).await;
}

#[tokio::test]
async fn consumers_of_all_nodes_are_added_up() {
    let redis = RedisServer::start();
    let start = |name: &str| Server::start_by_the_system(node(name, vec![redis.url()], Topology::Single));
    let (one, two) = (start("one"), start("two"));
    for (server, resource, calls) in [(&one, "x", 3), (&two, "y", 4)] {
        let mut client = server.client().await;
        for _ in 0..calls {
            client.should_allow(ask_under("open", resource, "bob")).await.unwrap();
        }
    }
    let mut usage = usage_of(&one).await;
    let adds_up = async || {
        let answer = usage.top_consumers(TopConsumersRequest::default()).await.unwrap().into_inner();
        let bob = |one: &weir_proto::v1::ConsumerCalls| (one.consumer.clone(), one.calls, one.error);
        answer.consumers.iter().map(bob).collect::<Vec<_>>() == [("bob".to_owned(), 7, 0)]
    };
    // They are exchanged every ten seconds.
    eventually_async(SOON.max(Duration::from_secs(30)), "the calls of both", adds_up).await;
}
