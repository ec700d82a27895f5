//! Redis dead, killed, frozen, forgetful: every decision is answered in time, nothing is charged twice,
//! and what came back is used again.

mod access;
mod cluster;
mod sentinel;
mod spans;
mod stalled;
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::algorithm::{Algorithm, Op};
use weir::clock::Clock;
use weir::config::{RedisConfig, Topology};
use weir::key::{KeySecret, Subject};
use weir::store::redis::{RedisShared, RedisStore};
use weir::store::{Decision, Part, Store, StoreError, Verdicts};
use weir::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir::units::Micros;

use crate::support::{Mode, Proxy, RedisServer, eventually_async, redis_config, watched};

/// A decision's deadline in these tests: long for a healthy Redis, short for a person.
pub(crate) const DEADLINE: Duration = Duration::from_millis(200);

/// What scheduling on a busy machine may add to it.
pub(crate) const SLACK: Duration = Duration::from_millis(300);

#[tokio::test]
async fn dead_at_start_then_found() {
    let redis = RedisServer::start();
    redis.kill();
    let store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    assert!(matches!(allow(&store, "r").await, Err(StoreError::Unavailable(_))));
    redis.restart();
    let answers = async || allow(&store, "r").await == Ok(true);
    eventually_async(Duration::from_secs(2), "decisions after Redis came up", answers).await;
}

#[tokio::test]
async fn killed_and_restarted() {
    let redis = RedisServer::start();
    let store = ready(&redis).await;
    assert_eq!(allow(&store, "r").await, Ok(true));
    redis.kill();
    for _ in 0..50 {
        let asked = Instant::now();
        assert!(allow(&store, "r").await.is_err());
        assert!(asked.elapsed() < DEADLINE + SLACK, "answered after {:?}", asked.elapsed());
    }
    redis.restart();
    let answers = async || allow(&store, "r").await == Ok(true);
    eventually_async(Duration::from_secs(2), "decisions after the restart", answers).await;
}

/// A frozen server reports no error: only the deadline tells, and after three of them the link stops
/// waiting for each.
#[tokio::test]
async fn frozen_and_thawed() {
    let redis = RedisServer::start();
    let store = ready(&redis).await;
    assert_eq!(allow(&store, "r").await, Ok(true));
    redis.freeze();
    let frozen = Instant::now();
    let mut longest = Duration::ZERO;
    let mut quick = 0;
    while frozen.elapsed() < Duration::from_secs(2) {
        let asked = Instant::now();
        assert!(allow(&store, "r").await.is_err());
        longest = longest.max(asked.elapsed());
        quick += u32::from(asked.elapsed() < DEADLINE / 4);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(longest < DEADLINE + SLACK, "a caller waited {longest:?}");
    assert!(quick > 50, "only {quick} callers were answered at once");
    redis.thaw();
    let thawed = Instant::now();
    let answers = async || allow(&store, "r").await.is_ok();
    eventually_async(Duration::from_secs(2), "decisions after the thaw", answers).await;
    println!("recovered {:?} after the thaw", thawed.elapsed());
}

/// Calls that are in flight when the server freezes are executed when it thaws, or never: their late
/// replies reach nobody, and nothing is charged twice.
#[tokio::test]
async fn late_replies_reach_nobody_and_charge_once() {
    let redis = RedisServer::start();
    let store = Arc::new(ready(&redis).await);
    assert_eq!(charge(&store, "warm", 1).await, Ok(99_999));
    redis.freeze();
    let calls: Vec<_> = (0..20)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { charge(&store, &format!("late{i}"), 1 + i).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Err(StoreError::Timeout));
    }
    redis.thaw();
    let answers = async || charge(&store, "warm", 0).await == Ok(99_999);
    eventually_async(Duration::from_secs(2), "the right answer for the right key", answers).await;
    for i in 0..20 {
        let remaining = charge(&store, &format!("late{i}"), 0).await.unwrap();
        let charged = 100_000 - remaining;
        assert!(charged == 0 || charged == 1 + i, "late{i} was charged {charged}");
    }
}

#[tokio::test]
async fn scripts_forgotten_under_load() {
    let redis = RedisServer::start();
    let store = ready(&redis).await;
    for round in 0..200 {
        if round % 10 == 0 {
            redis.flush_scripts();
        }
        assert_eq!(charge(&store, "r", 1).await, Ok(100_000 - 1 - round), "round {round}");
    }
}

/// A connection that is cut while calls are on it: each caller hears of it, and the next connection
/// serves.
#[tokio::test]
async fn connection_cut_in_flight() {
    let redis = RedisServer::start();
    let proxy = Proxy::start(redis.port());
    let store = Arc::new(watched(&shared(&config(vec![proxy.url()], Topology::Single))).await);
    for round in 0..5 {
        eventually_async(Duration::from_secs(2), "a connection", async || allow(&store, "r").await.is_ok())
            .await;
        proxy.set_mode(Mode::Stall);
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { allow(&store, "r").await })
            })
            .collect();
        tokio::task::yield_now().await;
        proxy.set_mode(Mode::Drop);
        for call in calls {
            assert!(call.await.unwrap().is_err(), "round {round}");
        }
        proxy.set_mode(Mode::Pass);
    }
}

#[tokio::test]
async fn waiting_is_bounded() {
    let redis = RedisServer::start();
    let config = RedisConfig { max_waiting: 8, ..config(vec![redis.url()], Topology::Single) };
    let store = Arc::new(watched(&shared(&config)).await);
    assert_eq!(allow(&store, "r").await, Ok(true));
    redis.freeze();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { allow(&store, "r").await })
        })
        .collect();
    let mut overloaded = 0;
    for call in calls {
        overloaded += u32::from(call.await.unwrap() == Err(StoreError::Overloaded(8)));
    }
    assert_eq!(overloaded, 42);
}

/// A caller that has gone before its request left is not charged.
#[tokio::test]
async fn callers_that_are_gone_are_not_charged() {
    let redis = RedisServer::start();
    redis.kill();
    let store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    let strategy = strategy();
    let gone = Decision { deadline: Some(Instant::now()), ..decision(&strategy, "r") };
    let mut out = Verdicts::default();
    assert!(store.decide(&gone, Op::Charge, &[1], &mut out).await.is_err());
    redis.restart();
    let answers = async || charge(&store, "r", 0).await == Ok(100_000);
    eventually_async(Duration::from_secs(2), "an untouched bucket", answers).await;
}

pub(crate) fn config(nodes: Vec<String>, topology: Topology) -> RedisConfig {
    RedisConfig { deadline: Micros::from(DEADLINE), ..redis_config(nodes, topology) }
}

pub(crate) fn shared(config: &RedisConfig) -> RedisShared {
    RedisShared::new(config, KeySecret::BUILT_IN, Clock::System)
}

pub(crate) async fn ready(redis: &RedisServer) -> RedisStore {
    watched(&shared(&config(vec![redis.url()], Topology::Single))).await
}

pub(crate) fn store_unwatched(config: &RedisConfig) -> RedisStore {
    shared(config).store()
}

/// 100,000 units that take an age to come back, per resource.
pub(crate) fn strategy() -> Arc<Strategy> {
    let algorithm = Algorithm::interval_refill(100_000, 1, Micros::from_secs(3600), false).unwrap();
    let scope = Scope::of(&[Field::Resource]);
    let limits = vec![Limit { name: "units".into(), scope, algorithm }];
    Arc::new(Strategy::new("failure", limits, false, FailurePolicy::Error).unwrap())
}

pub(crate) fn decision<'a>(strategy: &'a Arc<Strategy>, resource: &'a str) -> Decision<'a> {
    let subject = Subject { resource, consumer: "", ..Subject::default() };
    Decision { strategy, subject, deadline: None, part: Part::ALL }
}

/// Charges `cost` and tells what remains.
pub(crate) async fn charge(store: &RedisStore, resource: &str, cost: u64) -> Result<u64, StoreError> {
    let (strategy, mut out) = (strategy(), Verdicts::default());
    store.decide(&decision(&strategy, resource), Op::Charge, &[cost], &mut out).await?;
    Ok(out.limits[0].remaining)
}

pub(crate) async fn allow(store: &RedisStore, resource: &str) -> Result<bool, StoreError> {
    let (strategy, mut out) = (strategy(), Verdicts::default());
    store.decide(&decision(&strategy, resource), Op::Charge, &[1], &mut out).await?;
    Ok(out.decisions[0].allowed)
}
