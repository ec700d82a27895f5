//! The shared table on five engines: the pure driver, the memory store, a real Redis, a real cluster, and the store of the
//! example in crates/store.
//!
//! `VECTORS_DIR` names another folder. A file, an algorithm, an operation or an expectation that is
//! not understood is a failure, never a skip.

mod access;
pub mod algorithms;
mod engines;
mod table;

pub(crate) use crate::support::vectors as files;

use engines::{Fork, Pure, Stored};
use serde_json::Value;
use table::{Row, Table};
use weir_config::{MemoryConfig, RedisConfig, Topology};
use weir_core::algorithm::{Cause, LimitVerdict, Summary, Verdict};
use weir_core::key::KeySecret;
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisShared;
use weir_time::clock::{Clock, ManualClock};
use weir_units::{LATEST, Micros, Retry};

use crate::own_store::store::RedbStore;
use crate::support::{self, Accelerators, redis_config};

/// The origin of a row's `at_us`: 2024-01-01T00:00:00Z.
const BASE: u64 = 1_704_067_200_000_000;

#[tokio::test]
async fn pure() {
    let clock = ManualClock::at(Micros(BASE));
    run(&Stored::new(Pure::new(clock.clone()), clock)).await;
}

#[tokio::test]
async fn memory() {
    let clock = ManualClock::at(Micros(BASE));
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
    run(&Stored::new(store, clock)).await;
}

#[tokio::test]
async fn redis() {
    let redis = support::shared_redis();
    run_on_redis(vec![redis.url()], Topology::Single).await;
}

#[tokio::test]
async fn cluster() {
    let cluster = support::shared_cluster();
    run_on_redis(cluster.urls(), Topology::Cluster).await;
}

/// A store of one's own, which keeps its states as numbers in a file.
#[tokio::test]
async fn redb() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Micros(BASE));
    let store = RedbStore::open(&folder.path().join("limits"), Clock::Manual(clock.clone())).unwrap();
    run(&Stored::new(store.clone(), clock.clone())).await;
    clock.set(LATEST);
    store.sweep().unwrap();
}

async fn run_on_redis(nodes: Vec<String>, topology: Topology) {
    let clock = ManualClock::at(Micros(BASE));
    let store = support::redis_store(nodes, topology, Clock::Manual(clock.clone())).await;
    run(&Stored::new(store, clock)).await;
}

/// With what stands before the store in a service, each on and off.
#[tokio::test]
async fn accelerated_redis() {
    let redis = support::shared_redis();
    accelerated(&redis_config(vec![redis.url()], Topology::Single)).await;
}

#[tokio::test]
async fn accelerated_cluster() {
    accelerated(&redis_config(support::shared_cluster().urls(), Topology::Cluster)).await;
}

/// Several callers at once, each with keys of its own, so that calls have something to share.
async fn accelerated(config: &RedisConfig) {
    // A server's clock that steps back stays unseen as long as a denial is kept.
    let steady = |table: &Table| table.rows.is_sorted_by_key(|row| row.at_us);
    for accelerators in Accelerators::SETS {
        println!("{accelerators:?}");
        let clock = ManualClock::at(Micros(BASE));
        let shared = Clock::Manual(clock.clone());
        let config = accelerators.config(config.clone());
        // So that no set finds what another one has spent.
        let secret = KeySecret::random();
        let store = support::watched(&RedisShared::new(&config, secret, shared.clone())).await;
        let engine = Stored::new(accelerators.before(store, &config, &shared), clock).with_callers(4);
        run_those(&engine, |table| !accelerators.denials || steady(table)).await;
    }
}

/// Runs every table. One failure lists all differences.
async fn run<S: Fork>(engine: &Stored<S>) {
    run_those(engine, |_| true).await;
}

async fn run_those<S: Fork>(engine: &Stored<S>, wanted: impl Fn(&Table) -> bool) {
    let tables: Vec<Table> = table::read_all().into_iter().filter(wanted).collect();
    assert!(!tables.is_empty(), "no vectors found");
    let (mut rows, mut wrong) = (0, Vec::new());
    for table in &tables {
        for (number, row) in table.rows.iter().enumerate() {
            let at = Micros(BASE + row.at_us);
            rows += 1;
            let got: Box<dyn Fn(&str) -> Value> = match &table.rules {
                Some(rules) => {
                    let said = access::observed(table, rules, row, engine.at(at)).await;
                    Box::new(move |name| said.get(name).cloned().unwrap_or_default())
                }
                None => {
                    let (verdict, limits) = engine.step(&table.strategy, row, at).await;
                    Box::new(move |name| observed(table, row, &verdict, &limits)(name))
                }
            };
            for (name, want) in &row.expect {
                // What the source's own formula says, which no answer has.
                if name == "wait_for_one_us" {
                    continue;
                }
                let got = match name.as_str() {
                    // The one expectation that some engines do not tell: no verdict carries it.
                    "next_allowed_after_us" => {
                        match engine.next_allowed_after(&table.strategy, row, at).await {
                            Some(wait) => wait.into(),
                            None => continue,
                        }
                    }
                    name => got(name),
                };
                // A debt remains below 0 there.
                let is_debt = name == "available_permissions" && want.as_i64().is_some_and(|want| want < 0);
                let is_near = |(a, b): (i64, i64)| a.abs_diff(b) <= table.tolerance_us;
                if name.ends_with("_us") && got.as_i64().zip(want.as_i64()).is_some_and(is_near) {
                    continue;
                }
                if got != if is_debt { 0.into() } else { want.clone() } {
                    wrong.push(format!("{} row {}: {name} is {got}, not {want}", table.id, number + 1));
                }
            }
        }
    }
    println!("{rows} rows of {} tables", tables.len());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the values that a row may expect, by the names of the table.
fn observed<'a>(
    table: &'a Table,
    row: &'a Row,
    verdict: &'a Verdict,
    limits: &'a [LimitVerdict],
) -> impl Fn(&str) -> serde_json::Value + 'a {
    let summary = Summary::new(table.strategy.algorithms(), limits);
    move |name| match name {
        "allowed" => verdict.allowed.into(),
        "limit" => summary.limit.into(),
        "remaining" => summary.remaining.into(),
        "retry_after_us" => retry_us(summary.retry).into(),
        "reset_after_us" => summary.reset_after.0.into(),
        "wait_us" => verdict.wait.0.into(),
        "granted" => verdict.granted.into(),
        "applied" | "cancelled" => verdict.applied.into(),
        "available_permissions" => summary.remaining.into(),
        "fitted" => verdict.fitted.into(),
        "count" => limits.iter().map(|limit| limit.level_before).sum::<u64>().into(),
        "denied_by" if table.names_causes => limits.iter().filter_map(|one| one.cause).map(cause).collect(),
        "denied_by" => {
            let named = table.strategy.limits().iter().zip(limits);
            named.filter(|(_, verdict)| !verdict.fits()).map(|(limit, _)| limit.name.to_string()).collect()
        }
        "per_limit" => {
            let named = table.strategy.limits().iter().zip(limits);
            named.map(|(limit, verdict)| (limit.name.to_string(), per_limit(row, limit, verdict))).collect()
        }
        other => panic!("{}: the expectation `{other}` is not understood", table.id),
    }
}

/// Of one limit, what the row asks for.
fn per_limit(row: &Row, limit: &weir_core::strategy::Limit, verdict: &LimitVerdict) -> serde_json::Value {
    let asked = row.expect.get("per_limit").and_then(|all| all.get(&*limit.name)?.as_object());
    let value = |name: &str| -> serde_json::Value {
        match name {
            "allowed" => verdict.fits().into(),
            "limit" => limit.algorithm.limit().into(),
            "remaining" => verdict.remaining.into(),
            "retry_after_us" => retry_us(verdict.retry).into(),
            "reset_after_us" => verdict.reset_after.0.into(),
            other => panic!("the expectation per_limit.{other} is not understood"),
        }
    };
    let asked = asked.map(|all| all.keys().map(|name| (name.clone(), value(name))).collect());
    serde_json::Value::Object(asked.unwrap_or_default())
}

/// As the strict log's tables write it.
fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Count => "count",
        Cause::MinGap => "min_gap",
        Cause::Never => "never",
    }
}

fn retry_us(retry: Retry) -> i64 {
    match retry {
        Retry::Now => 0,
        Retry::After(wait) => i64::try_from(wait.0).unwrap(),
        Retry::Never => -1,
        Retry::Unknown => panic!("a rate limit knows how long to wait"),
    }
}
