//! Decisions of one strategy beside a flood of another: they wait for what is in flight, and for no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, StoreError, decide_one};
use weir_units::Micros;

use crate::failure::{config, shared};
use crate::support::{RedisServer, SOON, eventually_async, watched};

/// Decisions in flight per link.
const MAX_IN_FLIGHT: usize = 512;

/// Decisions of the flood that wait or are in flight at any time.
const FLOOD: usize = 4_000;

/// Decisions of the other strategy: a hundredth of those of the flood.
const OTHERS: usize = 300;

/// Counts turns: how much of the flood is answered while a decision of another strategy waits. Prints how long both wait.
#[tokio::test]
async fn a_decision_beside_a_flood_waits_for_what_is_in_flight() {
    let redis = RedisServer::start();
    let store = store(&redis, 20_000).await;
    let (flood, other) = (strategy("flood"), strategy("other"));
    let answered = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicUsize::new(0));
    let mut flooding = JoinSet::new();
    for number in 0..FLOOD {
        let (store, flood) = (Arc::clone(&store), Arc::clone(&flood));
        let (answered, stop) = (Arc::clone(&answered), Arc::clone(&stop));
        flooding.spawn(async move {
            let mut waits = Vec::new();
            while stop.load(Relaxed) == 0 {
                let began = Instant::now();
                assert_eq!(allow(&store, &flood, &number.to_string()).await, Ok(true));
                waits.push(began.elapsed());
                answered.fetch_add(1, Relaxed);
            }
            waits
        });
    }
    let mut waits = Vec::new();
    for number in 0..OTHERS {
        // A hundred of the flood for each of these.
        let until = answered.load(Relaxed) + 100;
        eventually_async(SOON, "the flood is answered", async || answered.load(Relaxed) >= until).await;
        let (before, began) = (answered.load(Relaxed), Instant::now());
        assert_eq!(allow(&store, &other, &number.to_string()).await, Ok(true));
        waits.push(began.elapsed());
        let meanwhile = answered.load(Relaxed) - before;
        // What was in flight, what leaves with it, and what had been answered and not yet noticed.
        assert!(meanwhile <= 3 * MAX_IN_FLIGHT, "{meanwhile} of the flood were answered first");
    }
    stop.store(1, Relaxed);
    let of_flood = flooding.join_all().await.concat();
    println!("p99 of the flood ({FLOOD} at a time): {:?}", p99(of_flood));
    println!("p99 beside it: {:?}", p99(waits));
}

/// At the bound the flood makes room, and not who comes.
#[tokio::test]
async fn at_the_bound_the_longest_queue_makes_room() {
    let redis = RedisServer::start();
    let most = 1_000;
    let store = store(&redis, most).await;
    let (flood, other) = (strategy("flood"), strategy("other"));
    redis.freeze();
    let mut flooding = JoinSet::new();
    for number in 0..2_000 {
        let (store, flood) = (Arc::clone(&store), Arc::clone(&flood));
        flooding.spawn(async move { (number, allow(&store, &flood, &number.to_string()).await) });
    }
    // All have been asked: half of them were refused.
    let mut answers = Vec::new();
    while answers.len() < 1_000 {
        answers.extend(flooding.join_next().await.map(Result::unwrap));
    }
    assert!(answers.iter().all(|(_, answer)| *answer == Err(StoreError::Overloaded(most))));
    let mut others = JoinSet::new();
    for number in 0..50 {
        let (store, other) = (Arc::clone(&store), Arc::clone(&other));
        others.spawn(async move { allow(&store, &other, &number.to_string()).await });
    }
    // Those that made room.
    let mut displaced = Vec::new();
    while displaced.len() < 50 {
        displaced.extend(flooding.join_next().await.map(Result::unwrap));
    }
    assert!(displaced.iter().all(|(_, answer)| *answer == Err(StoreError::Overloaded(most))));
    assert!(displaced.iter().all(|(number, _)| (950..1_000).contains(number)), "the newest: {displaced:?}");
    redis.thaw();
    assert!(others.join_all().await.into_iter().all(|answer| answer == Ok(true)));
}

async fn store(redis: &RedisServer, max_waiting: usize) -> Arc<RedisStore> {
    let config = RedisConfig {
        max_waiting,
        deadline: Micros::from_secs(30),
        ..config(vec![redis.url()], Topology::Single)
    };
    Arc::new(watched(&shared(&config)).await)
}

fn strategy(name: &str) -> Arc<Strategy> {
    let rate = Rate { count: 1_000_000, period: Micros::from_secs(1) };
    let algorithm = Algorithm::bucket(1_000_000, rate).unwrap();
    let limit = Limit { name: "each".into(), scope: Scope::new(&[Field::Resource]), algorithm };
    Arc::new(Strategy::new(name, vec![limit], true, FailurePolicy::Error).unwrap())
}

async fn allow(store: &RedisStore, strategy: &Arc<Strategy>, resource: &str) -> Result<bool, StoreError> {
    let subject = Subject { resource, ..Subject::default() };
    let verdicts = decide_one(store, &Decision::new(strategy, subject, Op::Charge, &[1])).verdicts().await?;
    Ok(verdicts.decisions[0].allowed)
}

fn p99(mut waits: Vec<Duration>) -> Duration {
    waits.sort_unstable();
    waits[(waits.len() - 1) * 99 / 100]
}
