//! Redis dead, killed, frozen, forgetful: every decision is answered in time, nothing is charged twice,
//! and what came back is used again.

pub(crate) mod access;
mod cluster;
mod connections;
mod passwords;
mod places;
mod sentinel;
mod spans;
mod stalled;
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_testing::DecideOne as _;

use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::redis::{RedisShared, RedisStore};
use weir_store::{Decision, StoreError, Verdicts};
use weir_time::clock::Clock;
use weir_units::Micros;

use crate::support::{
    Proxy, ProxyMode, RedisServer, SOON, Stopwatch, eventually_async, redis_config, watched,
};

/// A decision's deadline where it is what the test is about: long for a healthy Redis, short for a person.
pub(crate) const DEADLINE: Duration = Duration::from_millis(200);

/// Tolerance above the deadline, of the time that the test's thread is run ([`Stopwatch`]).
pub(crate) const SLACK: Duration = Duration::from_millis(300);

/// Longest time, counted alike, until decisions are made again after Redis can.
const RECOVERY: Duration = Duration::from_secs(3);

#[tokio::test]
async fn dead_at_start_then_found() {
    let redis = RedisServer::start();
    redis.kill();
    let store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    assert!(matches!(allow(&store, "r").await, Err(StoreError::Unavailable(_))));
    redis.restart();
    recovered("decisions after Redis came up", async || allow(&store, "r").await == Ok(true)).await;
}

/// A dead server refuses connections, so no call waits for its deadline, which is a minute here.
#[tokio::test]
async fn killed_and_restarted() {
    let redis = RedisServer::start();
    let store = ready(&redis).await;
    assert_eq!(allow(&store, "r").await, Ok(true));
    redis.kill();
    let watch = Stopwatch::start();
    for _ in 0..50 {
        let (answer, took) = watch.time(allow(&store, "r")).await;
        assert!(answer.is_err());
        assert!(took < DEADLINE + SLACK, "answered after {took:?}");
    }
    redis.restart();
    recovered("decisions after the restart", async || allow(&store, "r").await == Ok(true)).await;
}

/// A frozen server reports no error: only the deadline tells, and after three of them the link stops
/// waiting for each.
#[tokio::test]
async fn frozen_and_thawed() {
    let redis = RedisServer::start();
    let store = watched(&shared(&impatient(vec![redis.url()], Topology::Single))).await;
    recovered("the first decision", async || allow(&store, "r").await == Ok(true)).await;
    redis.freeze();
    let watch = Stopwatch::start();
    let mut quick = 0;
    eventually_async(SOON, "callers are answered at once", async || {
        let (answer, took) = watch.time(allow(&store, "r")).await;
        assert!(answer.is_err());
        assert!(took < DEADLINE + SLACK, "a caller waited {took:?}");
        quick += u32::from(took < DEADLINE / 4);
        quick > 50
    })
    .await;
    redis.thaw();
    recovered("decisions after the thaw", async || allow(&store, "r").await.is_ok()).await;
}

/// Calls that are in flight when the server freezes are executed when it thaws, or never. Their late replies are
/// dropped, and nothing is charged twice.
#[tokio::test]
async fn late_replies_are_dropped_and_charge_once() {
    let redis = RedisServer::start();
    let patient = ready(&redis).await;
    let store = Arc::new(watched(&shared(&impatient(vec![redis.url()], Topology::Single))).await);
    assert_eq!(charge(&patient, "warm", 1).await, Ok(99_999));
    recovered("the first decision", async || charge(&store, "warm", 0).await == Ok(99_999)).await;
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
    recovered("the right answer for the right key", answers).await;
    for i in 0..20 {
        let remaining = charge(&patient, &format!("late{i}"), 0).await.unwrap();
        let charged = 100_000 - remaining;
        assert!(charged == 0 || charged == 1 + i, "late{i} was charged {charged}");
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
        recovered("a connection", async || allow(&store, "r").await.is_ok()).await;
        proxy.set_mode(ProxyMode::Stall);
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { allow(&store, "r").await })
            })
            .collect();
        tokio::task::yield_now().await;
        proxy.set_mode(ProxyMode::Drop);
        for call in calls {
            assert!(call.await.unwrap().is_err(), "round {round}");
        }
        proxy.set_mode(ProxyMode::Pass);
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
    let refused = async || calls.iter().filter(|call| call.is_finished()).count() == 42;
    eventually_async(SOON, "there is room for eight", refused).await;
    redis.thaw();
    let mut overloaded = 0;
    for call in calls {
        match call.await.unwrap() {
            Err(error) => {
                assert_eq!(error, StoreError::Overloaded(8));
                overloaded += 1;
            }
            Ok(allowed) => assert!(allowed),
        }
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
    let now = Instant::now();
    let gone = Decision { deadline: Some(&now), ..decision(&strategy, "r") };
    let mut out = Verdicts::default();
    assert!(store.decide_one(&gone, Op::Charge, &[1], &mut out).await.is_err());
    redis.restart();
    recovered("an untouched bucket", async || charge(&store, "r", 0).await == Ok(100_000)).await;
}

/// For tests that are not about time.
pub(crate) fn config(nodes: Vec<String>, topology: Topology) -> RedisConfig {
    redis_config(nodes, topology)
}

/// For tests of what a server does that says nothing.
pub(crate) fn impatient(nodes: Vec<String>, topology: Topology) -> RedisConfig {
    let (deadline, connect_timeout) = (Micros::from(DEADLINE), Micros::from(DEADLINE));
    RedisConfig { deadline, connect_timeout, ..redis_config(nodes, topology) }
}

/// Between the two: a node that says nothing is passed by soon, and callers wait as long as they like. On a
/// busy machine a healthy node takes its time as well.
pub(crate) fn watchful(nodes: Vec<String>, topology: Topology) -> RedisConfig {
    RedisConfig { connect_timeout: Micros::from(DEADLINE), ..redis_config(nodes, topology) }
}

/// The decision of a caller who waits until [`DEADLINE`].
pub(crate) async fn in_time(store: &RedisStore, resource: &str) -> Result<bool, StoreError> {
    let (strategy, mut out) = (strategy(), Verdicts::default());
    let deadline = Some(Instant::now() + DEADLINE);
    let decision = Decision { deadline: deadline.as_ref(), ..decision(&strategy, resource) };
    store.decide_one(&decision, Op::Charge, &[1], &mut out).await?;
    Ok(out.decisions[0].allowed)
}

/// Waits until decisions are made again.
pub(crate) async fn recovered(what: &str, answers: impl AsyncFnMut() -> bool) {
    let watch = Stopwatch::start();
    eventually_async(SOON, what, answers).await;
    let took = watch.elapsed();
    println!("{what}: {took:?}");
    assert!(took < RECOVERY, "{what}: only after {took:?}");
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
    let scope = Scope::new(&[Field::Resource]);
    let limits = vec![Limit { name: "units".into(), scope, algorithm }];
    Arc::new(Strategy::new("failure", limits, false, FailurePolicy::Error).unwrap())
}

pub(crate) fn decision<'a>(strategy: &'a Arc<Strategy>, resource: &'a str) -> Decision<'a> {
    let subject = Subject { resource, consumer: "", ..Subject::default() };
    Decision::new(strategy, subject, Op::Peek, &[])
}

/// Charges `cost` and tells what remains.
pub(crate) async fn charge(store: &RedisStore, resource: &str, cost: u64) -> Result<u64, StoreError> {
    let (strategy, mut out) = (strategy(), Verdicts::default());
    store.decide_one(&decision(&strategy, resource), Op::Charge, &[cost], &mut out).await?;
    Ok(out.limits[0].remaining)
}

pub(crate) async fn allow(store: &RedisStore, resource: &str) -> Result<bool, StoreError> {
    let (strategy, mut out) = (strategy(), Verdicts::default());
    store.decide_one(&decision(&strategy, resource), Op::Charge, &[1], &mut out).await?;
    Ok(out.decisions[0].allowed)
}
