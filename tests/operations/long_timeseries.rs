//! The counts of each second, in a real RedisTimeSeries.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_config::{Config, Login, RedisConfig, Secret, StoreConfig, Topology};
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_units::Micros;
use weir_usage::{UsageConfig, with_usage};

use crate::failure::access::add_user;
use crate::redis_health::of_node;
use crate::support::clients::{is_skipped, root};
use crate::support::command::{Serve, text, weir};
use crate::support::server::{Server, ask, ask_under, config};
use crate::support::{RedisServer, SOON, eventually, eventually_async, redis_config, scratch};

/// docs/usage.md says the same.
const TIMESERIES_RIGHTS: &str = "+ts.create +ts.createrule +ts.add +expire";

/// A Redis with the module. `None` only where SKIP_TIMESERIES=1 asks for it.
fn redis_with_timeseries() -> Option<RedisServer> {
    if is_skipped("SKIP_TIMESERIES") {
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
    // Long: a machine that is busy with other tests shall not miss it. A frozen Redis costs it only once or twice.
    let redis = RedisConfig { login: Some(login), deadline: Micros(2_000_000), ..redis };
    let usage = UsageConfig {
        node: Some(name.to_owned()),
        shared: false,
        timeseries: true,
        ..UsageConfig::default()
    };
    let config = Config { store: StoreConfig::Redis(redis), ..config() };
    Server::start_by_the_system(with_usage(config, usage))
}

/// By node, strategy, pattern and outcome: the sum of all seconds of all processes.
fn sums(redis: &RedisServer, filter: &str) -> BTreeMap<String, u64> {
    let query = ["TS.MRANGE", "-", "+", "WITHLABELS", "AGGREGATION", "SUM", "1000", "FILTER", filter];
    type Series = (String, Vec<(String, String)>, Vec<(u64, String)>);
    let all: Vec<Series> = redis.query(&query);
    let mut sums = BTreeMap::<String, u64>::new();
    for (_, labels, points) in all {
        let labels: BTreeMap<String, String> = labels.into_iter().collect();
        let name = ["node", "strategy", "pattern", "outcome"].map(|label| labels[label].as_str()).join(" ");
        *sums.entry(name).or_default() +=
            points.iter().map(|(_, value)| value.parse::<u64>().unwrap()).sum::<u64>();
    }
    sums
}

async fn sums_become(redis: &RedisServer, expected: &[(&str, u64)]) {
    sums_of_become(redis, "data=hits", expected).await;
}

async fn sums_of_become(redis: &RedisServer, filter: &str, expected: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> =
        expected.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect();
    let mut last = BTreeMap::new();
    let agrees = async || {
        last = sums(redis, filter);
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
        let answer = client.should_allow(ask_under("open", "elsewhere", &consumer)).await.unwrap();
        assert!(!answer.into_inner().degraded, "Redis answers");
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
    eventually_async(SOON, "the node is asked again", async || {
        of_node(&one, "weir_store_breaker_open", &redis.addr()).as_deref() == Some("0")
    })
    .await;
    sums_become(&redis, &[(a, 20), (b, 20), (c, 5), (d, 5), ("one open none degraded_allowed", 3)]).await;

    // A process that is new goes on with the same series, also within the second in which the one before ended.
    calls(&one, 1).await;
    drop(one);
    let one = node("one", &redis);
    calls(&one, 1).await;
    sums_become(&redis, &[(a, 22), (b, 22), (c, 5), (d, 5), ("one open none degraded_allowed", 3)]).await;
    let keys = redis.keys();
    let of = |end: &str| keys.iter().filter(|key| key.contains("{usage}:ts:") && key.ends_with(end)).count();
    assert_eq!((of(":hits"), of(":hits:minute"), of(":cost:minute")), (7, 7, 7), "{keys:?}");
    let hits = keys.iter().find(|key| key.ends_with(":burst:burst/*:allowed:hits")).unwrap();
    let rules = format!("{:?}", redis.cli(&["TS.INFO", hits]));
    assert!(rules.contains(&format!("{hits}:minute")), "{rules}");
}

/// Nodes get their names from the machine, or are given one by mistake.
#[tokio::test]
async fn two_processes_with_one_node_name_do_not_overwrite_each_other() {
    let Some(redis) = redis_with_timeseries() else { return };
    add_user(&redis, "hunter2", &TIMESERIES_RIGHTS.split(' ').collect::<Vec<_>>());
    let both = [node("one", &redis), node("one", &redis)];
    calls(&both[0], 20).await;
    calls(&both[1], 25).await;
    sums_become(&redis, &[("one burst burst/* allowed", 45), ("one open none allowed", 45)]).await;
}

#[tokio::test]
async fn the_calls_of_allowed_are_charges_and_their_cost_is_exported_beside_them() {
    let Some(redis) = redis_with_timeseries() else { return };
    add_user(&redis, "hunter2", &TIMESERIES_RIGHTS.split(' ').collect::<Vec<_>>());
    let server = node("one", &redis);
    let mut client = RateLimitServiceClient::new(server.channel().await);
    let plain = ask_under("open", "x", "bob");
    let mut charges = 0;
    for number in 0..20 {
        let call = ShouldAllowRequest { cost: Some(3), ..ask_under("open", "x", &format!("c{number}")) };
        for request in [ShouldAllowRequest { peek: true, ..call.clone() }, call] {
            assert!(client.should_allow(request).await.unwrap().into_inner().allowed);
        }
        charges += 1;
    }
    for _ in 0..3 {
        client.should_allow(ShouldAllowRequest { cost: Some(0), ..plain.clone() }).await.unwrap();
        client.should_allow(ShouldAllowRequest { id: "1".to_owned(), ..plain.clone() }).await.unwrap();
    }
    charges += 1;
    let (allowed, peeked, repeated) =
        ("one open none allowed", "one open none peeked", "one open none repeated");
    sums_become(&redis, &[(allowed, charges), (peeked, 23), (repeated, 2)]).await;
    sums_of_become(&redis, "data=cost", &[(allowed, 61)]).await;
}

/// Otherwise the series of every process there ever was would stay.
#[tokio::test]
async fn every_series_expires() {
    let Some(redis) = redis_with_timeseries() else { return };
    add_user(&redis, "hunter2", &TIMESERIES_RIGHTS.split(' ').collect::<Vec<_>>());
    let server = node("one", &redis);
    calls(&server, 1).await;
    sums_become(&redis, &[("one burst burst/* allowed", 1), ("one open none allowed", 1)]).await;
    let keys = redis.keys();
    let series: Vec<&String> = keys.iter().filter(|key| key.contains("{usage}:ts:")).collect();
    assert_eq!(series.len(), 8, "{series:?}");
    // The pipeline that has written a sample may still be about to set the expiry.
    eventually_async(SOON, "an expiry", async || {
        series.iter().all(|key| redis.query::<i64>(&["PTTL", key]) > 23 * 3_600_000)
    })
    .await;
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

/// docs/simulate.md: the four tests against a server, and what the series say of them.
#[test]
fn the_comparison_against_a_server_is_in_its_series() {
    const CALLS: &str = "30";
    let Some(redis) = redis_with_timeseries() else { return };
    let document = include_str!("../../docs/simulate.md");
    let query =
        document.split('`').map(|code| code.replace('\n', " ")).find(|code| code.starts_with("TS.MRANGE"));
    let tests = document.lines().find_map(|line| line.strip_prefix("for test in \"--rate 40 --keys 10\" "));
    assert!(
        tests.is_some_and(|tests| tests == r#""--rate 40 --keys 100" "--keys 10" "--rate 40 --keys 1"; do"#)
    );
    let folder = scratch::dir("comparison-");
    let rules = include_str!("../../docs/examples/compare.yaml");
    let store = format!("store: {{ redis: {{ nodes: [\"{}\"] }} }}", redis.url());
    let usage = "usage: { node: one, timeseries: true }";
    let file = scratch::file(folder.path(), "weir.yaml", format!("{store}\n{usage}\n{rules}"));
    let server = Serve::start(&["--config", file.to_str().unwrap()]);
    let mut allowed = BTreeMap::<String, u64>::new();
    for test in ["--rate 40 --keys 10", "--rate 40 --keys 100", "--keys 10", "--rate 40 --keys 1"] {
        let strategies = ["--strategy", "gate", "--strategy", "first-come", "--strategy", "both"];
        let args = ["load", "--server", &server.server, "--quiet", "--output", "json", "--resource", "zoo"];
        let test: Vec<&str> = test.split(' ').collect();
        let out = weir(&[&args[..], &["--until-allowed", CALLS], &strategies, &test].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        for strategy in report["strategies"].as_array().unwrap() {
            let name = strategy["strategy"].as_str().unwrap().to_owned();
            *allowed.entry(name).or_default() += strategy["allowed"].as_u64().unwrap();
        }
    }
    assert_eq!(allowed.values().copied().collect::<Vec<_>>(), [120; 3], "{allowed:?}");
    let query = query.unwrap();
    let query: Vec<&str> = query.split_whitespace().collect();
    type Series = (String, Vec<(String, String)>, Vec<(u64, String)>);
    let mut last = BTreeMap::new();
    eventually(SOON, "the last second is written", || {
        let all: Vec<Series> = redis.query(&query);
        let sum =
            |points: &[(u64, String)]| points.iter().map(|(_, value)| value.parse::<u64>().unwrap()).sum();
        let sums = all
            .iter()
            .filter_map(|(name, _, points)| Some((name.strip_prefix("strategy=")?.to_owned(), sum(points))));
        last = sums.collect();
        last == allowed
    });
    println!("{query:?}: {last:?}");
}
