//! The cost of few decisions in Redis: the commands of one that comes alone, and of several that gather.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, decide_one};
use weir_units::Micros;

use crate::failure::{config, shared};
use crate::support::{RedisServer, eventually_async, watched};

const CALLERS: usize = 8;

/// Turns of the runtime after which a decision that does not wait is at Redis.
const TURNS: usize = 16;

#[tokio::test]
async fn a_decision_that_comes_alone_takes_one_script_call_with_one_read_and_one_write() {
    let redis = RedisServer::start();
    let store = store(&redis, Micros::ZERO).await;
    let window = Algorithm::fixed_window(1 << 40, Micros::from_secs(86_400), false, false).unwrap();
    let bucket =
        Algorithm::bucket(1_000_000, Rate { count: 1_000_000, period: Micros::from_secs(1) }).unwrap();
    for algorithm in [window, bucket] {
        let strategy = strategy(algorithm);
        // It loads the script.
        allow(&store, &strategy, "warm up").await;
        for _ in 0..2 {
            redis.cli(&["CONFIG", "RESETSTAT"]);
            allow(&store, &strategy, "new, then known").await;
            let expected = ["evalsha", "get", "time", "write"].map(|command| (command.to_owned(), 1));
            assert_eq!(commands(&redis), BTreeMap::from(expected));
        }
    }
}

#[tokio::test]
async fn decisions_that_gather_share_a_script_call_and_others_leave_at_once() {
    let redis = RedisServer::start();
    let strategy = strategy(Algorithm::fixed_window(1 << 40, Micros::from_secs(60), false, false).unwrap());
    let at_once = store(&redis, Micros::ZERO).await;
    let gathers = store(&redis, Micros::from_millis(1)).await;
    assert_eq!(script_calls(&redis, &at_once, &strategy).await, CALLERS);
    let patience = std::time::Duration::from_secs(60);
    // A machine that is busy may take longer than a millisecond for them.
    eventually_async(patience, "all share a call", async || {
        script_calls(&redis, &gathers, &strategy).await == 1
    })
    .await;
}

/// Script calls of callers that come one after the other, each when the one before could have left.
async fn script_calls(redis: &RedisServer, store: &Arc<RedisStore>, strategy: &Arc<Strategy>) -> usize {
    allow(store, strategy, "warm up").await;
    redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut calling = JoinSet::new();
    for number in 0..CALLERS {
        let (store, strategy) = (Arc::clone(store), Arc::clone(strategy));
        calling.spawn(async move { allow(&store, &strategy, &number.to_string()).await });
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }
    calling.join_all().await;
    commands(redis)["evalsha"]
}

/// Commands since the last reset, and how often they ran, without those that ask for it.
fn commands(redis: &RedisServer) -> BTreeMap<String, usize> {
    let stats: String = redis.query(&["INFO", "commandstats"]);
    let line = |line: &str| {
        let (command, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let command = if matches!(command, "set" | "setrange") { "write" } else { command };
        Some((command.to_owned(), figures.split(',').next()?.parse().ok()?))
    };
    let asking = |command: &str| command == "info" || command.starts_with("config");
    stats.lines().filter_map(line).filter(|(command, _)| !asking(command)).collect()
}

async fn store(redis: &RedisServer, gather: Micros) -> Arc<RedisStore> {
    let config = RedisConfig {
        gather,
        deadline: Micros::from_secs(30),
        ..config(vec![redis.url()], Topology::Single)
    };
    Arc::new(watched(&shared(&config)).await)
}

fn strategy(algorithm: Algorithm) -> Arc<Strategy> {
    let limit = Limit { name: "each".into(), scope: Scope::new(&[Field::Resource]), algorithm };
    Arc::new(Strategy::new("few", vec![limit], true, FailurePolicy::Error).unwrap())
}

async fn allow(store: &RedisStore, strategy: &Arc<Strategy>, resource: &str) {
    let subject = Subject { resource, ..Subject::default() };
    let verdicts =
        decide_one(store, &Decision::new(strategy, subject, Op::Charge, &[1])).verdicts().await.unwrap();
    assert!(verdicts.decisions[0].allowed);
}
