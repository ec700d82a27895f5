//! Nodes come and go, and what they have counted stays for 30 days. Their sums are merged once.

use std::time::Instant;

use weir_config::{Config, StoreConfig, Topology};
use weir_core::key::Namespace;
use weir_proto::v1::GetUsageRequest;
use weir_time::clock::Clock;
use weir_usage::{UsageConfig, with_usage};

use super::{get, key, totals, usage_of};
use crate::support::server::{Server, config};
use crate::support::{RedisServer, SOON, eventually_async, redis_config};

const PROCESSES: u64 = 300;

/// Writes the records of processes of the release before: a call and a cost of 2 each in every minute of ten.
fn write_former(redis: &RedisServer) {
    let now = Clock::System.now().0 / 1_000_000;
    let ended = now / 60 * 60 - 600;
    let key = |name: String| Namespace::default().usage_key(&name);
    for process in 0..PROCESSES {
        let member = format!("pod{process}:{:x}-{process:x}", (ended - 1_200) * 1_000_000);
        redis.cli(&["HSET", &key(format!("names:{member}")), "7", r#"["burst","burst/*","allowed"]"#]);
        for minute in 1..=10 {
            let second = ended - 60 * minute;
            for (kind, slot, chunk) in [
                ("s", second, second / 60),
                ("m", second / 60, second / 3_600),
                ("h", second / 3_600, second / 86_400),
            ] {
                // An hour has all ten.
                let counted = if kind == "h" { "7:10:20" } else { "7:1:2" };
                redis.cli(&["HSET", &key(format!("{kind}:{member}:{chunk}")), &slot.to_string(), counted]);
            }
        }
        redis.cli(&["ZADD", &key("nodes".to_owned()), &ended.to_string(), &member]);
    }
}

fn hash_reads(redis: &RedisServer) -> u64 {
    let stats: String = redis.query(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_hgetall:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// Each call read everything that 300 processes had written: 2.4 s of a core, again and again.
#[tokio::test]
async fn processes_that_have_ended_are_read_once() {
    let redis = RedisServer::start();
    write_former(&redis);
    let usage = UsageConfig { node: Some("one".to_owned()), sample: 0, ..UsageConfig::default() };
    let store = StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single));
    let server = Server::start_by_the_system(with_usage(Config { store, ..config() }, usage));
    let mut client = usage_of(&server).await;
    let connected = async || get(&mut client, GetUsageRequest::default()).await.nodes.len() > 1;
    eventually_async(SOON, "Redis is read", connected).await;

    // The first ones are told that it is not all yet, and no call reads more than its part.
    let mut answers = 1;
    let merged = async || {
        let answer = get(&mut client, GetUsageRequest::default()).await;
        answers += 1;
        assert!(
            answer.incomplete.is_empty() || answer.incomplete.contains("are still to be read"),
            "{answer:?}"
        );
        assert_eq!(answer.nodes.len() as u64, PROCESSES + 1);
        let sums = totals(&answer);
        let (calls, cost) = sums.get(&key("burst", "burst/*", "allowed")).copied().unwrap_or_default();
        assert_eq!(cost, 2 * calls);
        assert!(
            calls <= 10 * PROCESSES && (calls == 10 * PROCESSES) == answer.incomplete.is_empty(),
            "{calls}"
        );
        calls == 10 * PROCESSES
    };
    eventually_async(SOON, "all are merged", merged).await;
    assert!(answers > 2, "one call has read all");

    let (before, started) = (hash_reads(&redis), Instant::now());
    for _ in 0..20 {
        let answer = get(&mut client, GetUsageRequest::default()).await;
        assert_eq!(totals(&answer)[&key("burst", "burst/*", "allowed")], (3_000, 6_000));
    }
    println!("a call about {PROCESSES} former processes takes {:?}", started.elapsed() / 20);
    assert_eq!(hash_reads(&redis), before, "what is merged is not read again");

    // One of them was only idle: it writes again, and is counted once.
    let now = Clock::System.now().0 / 1_000_000;
    let nodes = Namespace::default().usage_key("nodes");
    let member = redis.query::<Vec<String>>(&["ZRANGE", &nodes, "0", "0"]).remove(0);
    let chunk = Namespace::default().usage_key(&format!("s:{member}:{}", now / 60));
    redis.cli(&["HSET", &chunk, &now.to_string(), "7:5:10"]);
    redis.cli(&["ZADD", &nodes, &now.to_string(), &member]);
    let counted = async || {
        let answer = get(&mut client, GetUsageRequest::default()).await;
        let sum = totals(&answer).get(&key("burst", "burst/*", "allowed")).copied().unwrap_or_default();
        assert!(sum.0 <= 3_005, "{sum:?}");
        sum == (3_005, 6_010) && answer.incomplete.is_empty()
    };
    eventually_async(SOON, "it is counted once", counted).await;
}
