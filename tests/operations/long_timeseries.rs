//! What each second counted, in a real RedisTimeSeries.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use weir_config::{Config, Login, RedisConfig, Secret, StoreConfig, Topology, UsageConfig};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_units::Micros;

use crate::failure::access::add_user;
use crate::support::clients::root;
use crate::support::server::{Server, ask, ask_under, config};
use crate::support::{RedisServer, SOON, eventually_async, redis_config};

/// docs/usage.md says the same.
const TIMESERIES_RIGHTS: &str = "+ts.create +ts.createrule +ts.add";

/// A Redis with the module. `None` only where SKIP_TIMESERIES=1 asks for it.
fn redis_with_timeseries() -> Option<RedisServer> {
    if std::env::var_os("SKIP_TIMESERIES").is_some_and(|value| value == "1") {
        let _ = writeln!(std::io::stderr(), "SKIP_TIMESERIES=1: a test with RedisTimeSeries has NOT run");
        return None;
    }
    let cache = root().join(".cache/timeseries");
    assert!(
        cache.join("stamp").exists(),
        "RedisTimeSeries is not installed: run `make test-long`, or scripts/install-timeseries.sh, or go without it \
         with SKIP_TIMESERIES=1"
    );
    let module = cache.join("redistimeseries.so").display().to_string();
    Some(RedisServer::builder().arg("--loadmodule").arg(module).start())
}

fn node(name: &str, redis: &RedisServer) -> Server {
    let login = Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") };
    let redis = redis_config(vec![redis.url()], Topology::Single);
    let redis = RedisConfig { login: Some(login), deadline: Micros(200_000), ..redis };
    let usage = UsageConfig {
        node: Some(name.to_owned()),
        shared: false,
        timeseries: true,
        ..UsageConfig::default()
    };
    Server::start_by_the_system(Config { store: StoreConfig::Redis(redis), usage, ..config() })
}

/// By node, strategy, pattern and outcome: the sum of all seconds, as the query of the recipes for Redis finds them.
fn sums(redis: &RedisServer, filter: &str) -> BTreeMap<String, u64> {
    let query = ["TS.MRANGE", "-", "+", "WITHLABELS", "AGGREGATION", "SUM", "1000", "FILTER", filter];
    type Series = (String, Vec<(String, String)>, Vec<(u64, String)>);
    let all: Vec<Series> = redis.query(&query);
    let sum = |(_, labels, points): Series| {
        let labels: BTreeMap<String, String> = labels.into_iter().collect();
        let name = ["node", "strategy", "pattern", "outcome"].map(|label| labels[label].as_str()).join(" ");
        (name, points.iter().map(|(_, value)| value.parse::<u64>().unwrap()).sum())
    };
    all.into_iter().map(sum).collect()
}

async fn sums_become(redis: &RedisServer, expected: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> =
        expected.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect();
    let mut last = BTreeMap::new();
    let agrees = async || {
        last = sums(redis, "data=hits");
        last == expected
    };
    let agreed = tokio::time::timeout(SOON, eventually_async(SOON, "the sums", agrees)).await;
    assert!(agreed.is_ok(), "{last:?}, not {expected:?}");
}

async fn calls(server: &Server, count: u64) {
    let mut client = RateLimitServiceClient::new(server.channel().await);
    for number in 0..count {
        let consumer = format!("c{number}");
        client.should_allow(ask("burst/a", &consumer)).await.unwrap();
        client.should_allow(ask_under("open", "elsewhere", &consumer)).await.unwrap();
    }
}

#[tokio::test]
async fn every_second_is_a_sample_of_its_series() {
    let Some(redis) = redis_with_timeseries() else { return };
    add_user(&redis, "hunter2", &TIMESERIES_RIGHTS.split(' ').collect::<Vec<_>>());
    let (one, two) = (node("one", &redis), node("two", &redis));
    calls(&one, 20).await;
    calls(&two, 5).await;
    let (a, b) = ("one burst burst/* allowed", "one open none allowed");
    let (c, d) = ("two burst burst/* allowed", "two open none allowed");
    sums_become(&redis, &[(a, 20), (b, 20), (c, 5), (d, 5)]).await;

    // What is counted while Redis is away is written when it is back, with the second that it belongs to.
    redis.freeze();
    let mut client = RateLimitServiceClient::new(one.channel().await);
    for _ in 0..3 {
        let answer = client.should_allow(ask_under("open", "elsewhere", "bob")).await.unwrap().into_inner();
        assert!(answer.degraded);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    redis.thaw();
    sums_become(&redis, &[(a, 20), (b, 20), (c, 5), (d, 5), ("one open none degraded_allowed", 3)]).await;

    // A process that is new goes on with the same series, also within the second in which the one before ended.
    calls(&one, 1).await;
    drop(one);
    let one = node("one", &redis);
    calls(&one, 1).await;
    sums_become(&redis, &[(a, 22), (b, 22), (c, 5), (d, 5), ("one open none degraded_allowed", 3)]).await;
    let keys = redis.keys();
    let minutes = keys.iter().filter(|key| key.contains("{usage}:ts:") && key.ends_with(":minute")).count();
    assert_eq!(minutes, 5, "{keys:?}");
    let rules = format!("{:?}", redis.cli(&["TS.INFO", "weir:{usage}:ts:one:burst:burst/*:allowed"]));
    assert!(rules.contains("ts:one:burst:burst/*:allowed:minute"), "{rules}");
}

#[test]
fn the_document_says_what_it_needs() {
    assert!(include_str!("../../docs/usage.md").contains(&format!("`{TIMESERIES_RIGHTS}`")));
}

#[tokio::test]
async fn a_redis_without_the_module_decides_all_the_same() {
    let redis = RedisServer::start();
    add_user(&redis, "hunter2", &[]);
    let server = node("one", &redis);
    calls(&server, 3).await;
    let mut client = RateLimitServiceClient::new(server.channel().await);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let answer = client.should_allow(ask_under("open", "elsewhere", "bob")).await.unwrap().into_inner();
    assert!(answer.allowed && !answer.degraded);
}
