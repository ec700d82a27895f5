//! Leases in Redis: what a call writes, how long keys live, and what happens when one of them is gone.

use std::sync::Arc;

use futures_util::future::join_all;
use weir_config::Topology;
use weir_core::key::Subject;
use weir_core::strategy::{ConcurrencyNumbers, LimitSource, Strategy};
use weir_leases::model::{LeaseAnswer, LeaseOp, LeaseOutcome, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::world::{self, START, adaptive};
use crate::support::{self, RedisServer};

async fn store(redis: &RedisServer, clock: Clock) -> RedisStore {
    support::redis_store(vec![redis.url()], Topology::Single, clock).await
}

async fn call(
    store: &RedisStore,
    strategy: &Arc<Strategy>,
    id: &str,
    op: LeaseOp,
) -> Result<LeaseAnswer, StoreError> {
    let subject = Subject { resource: "r", consumer: "c", ..Subject::default() };
    store.lease(&LeaseAsk { strategy, subject, id, op, deadline: None }).await
}

const fn acquire(ttl: Micros) -> LeaseOp {
    LeaseOp::Acquire { weight: 1, ttl }
}

const RELEASE: LeaseOp = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };

fn is_held(answer: &Result<LeaseAnswer, StoreError>) -> bool {
    matches!(answer, Ok(LeaseAnswer { outcome: LeaseOutcome::Held { .. }, .. }))
}

fn adaptive_strategy() -> Arc<Strategy> {
    let aimd = weir_core::strategy::AimdRule { backoff: 0.9, timeout: Micros::from_secs(5) };
    let source =
        LimitSource::Adaptive(adaptive((20, 20, 200), weir_core::strategy::ControllerRule::Aimd(aimd)));
    world::strategy("adaptive", ConcurrencyNumbers { source, ..world::numbers(0) })
}

/// On the server's own clock: all keys live as long as the last lease, those of a controller for its idle time more.
#[tokio::test]
async fn every_key_has_an_expiry() {
    let redis = RedisServer::start();
    let store = store(&redis, Clock::System).await;
    let fixed = world::strategy("fixed", world::numbers(3));
    let minute = Micros::from_secs(60);
    assert!(is_held(&call(&store, &fixed, "a", acquire(minute)).await));
    assert!(is_held(&call(&store, &fixed, "b", acquire(Micros::from_secs(600))).await));
    let keys = redis.state_keys();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in &keys {
        assert!(key.ends_with("fixed:concurrency|Rr|Cc"), "{key}");
        let left = redis.pttl(key);
        assert!((590_000..=605_000).contains(&left), "{key}: {left}");
    }
    // The last release removes them.
    call(&store, &fixed, "a", RELEASE).await.unwrap();
    call(&store, &fixed, "b", RELEASE).await.unwrap();
    assert_eq!(redis.state_keys(), Vec::<String>::new());
    let adaptive = adaptive_strategy();
    assert!(is_held(&call(&store, &adaptive, "a", acquire(minute)).await));
    call(&store, &adaptive, "a", RELEASE).await.unwrap();
    // The hash remembers the limit. A set that is made again has an expiry too.
    let left = redis.pttl(&redis.state_keys()[0]);
    assert!((600_000..=665_000).contains(&left), "{left}");
    assert!(is_held(&call(&store, &adaptive, "b", acquire(minute)).await));
    assert_eq!(redis.state_keys().len(), 2);
    for key in redis.state_keys() {
        assert!(redis.pttl(&key) > 600_000, "{key}: {}", redis.pttl(&key));
    }
}

/// A refused acquisition, a release of an unknown lease and a repeated request do not change the state.
#[tokio::test]
async fn a_refusal_writes_nothing() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let store = store(&redis, Clock::Manual(clock.clone())).await;
    let strategy = world::strategy("exports", world::numbers(1));
    let ttl = Micros::from_secs(10);
    assert!(is_held(&call(&store, &strategy, "a", acquire(ttl)).await));
    let written = || {
        let info: String = redis.query(&["INFO", "persistence"]);
        let changes = info.lines().find(|line| line.starts_with("rdb_changes_since_last_save:"));
        changes.expect("Redis counts its writes").to_owned()
    };
    let before = written();
    for (id, op) in [
        ("b", acquire(ttl)),
        ("a", acquire(ttl)),
        ("b", LeaseOp::Acquire { weight: 2, ttl }),
        ("a", LeaseOp::Acquire { weight: 2, ttl }),
        ("b", LeaseOp::Renew { ttl }),
        ("b", RELEASE),
    ] {
        call(&store, &strategy, id, op).await.unwrap();
        assert_eq!(written(), before, "{id} {op:?}");
    }
    // But for the leases that have ended: they go with the first call that finds them.
    clock.set(Micros(START + ttl.0));
    call(&store, &strategy, "b", RELEASE).await.unwrap();
    assert_eq!(redis.state_keys(), Vec::<String>::new());
}

/// Thousands that have ended together are removed by one call.
#[tokio::test]
async fn all_that_has_ended_is_removed_at_once() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let store = store(&redis, Clock::Manual(clock.clone())).await;
    let strategy = world::strategy("exports", world::numbers(10_000));
    let holders: Vec<String> = (0..10_000).map(|number| format!("holder {number}")).collect();
    let mut most = 0;
    for holders in holders.chunks(1000) {
        let calls = holders.iter().map(|id| call(&store, &strategy, id, acquire(Micros::from_secs(10))));
        for answer in futures_util::future::join_all(calls).await {
            assert!(is_held(&answer), "{answer:?}");
            most = most.max(answer.unwrap().in_flight);
        }
    }
    assert_eq!(most, 10_000);
    clock.set(Micros(START + 10_000_000));
    let answer = call(&store, &strategy, "next", acquire(Micros::from_secs(10))).await.unwrap();
    assert_eq!((answer.in_flight, answer.remaining), (1, 9_999));
    let records = redis.state_keys().into_iter().find(|key| key.contains("}R")).unwrap();
    assert_eq!(redis.query::<u64>(&["HLEN", &records]), 2, "the sums, and the next lease");
}

/// An eviction of one of the keys is an eviction of both: what the other one says is not believed.
#[tokio::test]
async fn a_key_alone_means_nothing() {
    let redis = RedisServer::start();
    let store = store(&redis, Clock::System).await;
    let strategy = world::strategy("exports", world::numbers(2));
    let ttl = Micros::from_secs(600);
    for gone in ["}R", "}E"] {
        for id in ["a", "b"] {
            assert!(is_held(&call(&store, &strategy, id, acquire(ttl)).await), "{gone} {id}");
        }
        assert!(!is_held(&call(&store, &strategy, "c", acquire(ttl)).await));
        let key = redis.state_keys().into_iter().find(|key| key.contains(gone)).unwrap();
        redis.cli(&["DEL", &key]);
        let answer = call(&store, &strategy, "d", acquire(ttl)).await.unwrap();
        assert_eq!((answer.in_flight, answer.remaining), (1, 1), "{gone}");
        let lost = call(&store, &strategy, "a", LeaseOp::Renew { ttl }).await.unwrap();
        assert_eq!(lost.outcome, LeaseOutcome::NotHeld);
        call(&store, &strategy, "d", RELEASE).await.unwrap();
    }
}

/// Something else under a key of ours is an error of that key alone.
#[tokio::test]
async fn a_key_of_another_kind_is_unreadable() {
    let redis = RedisServer::start();
    let store = store(&redis, Clock::System).await;
    let strategy = world::strategy("exports", world::numbers(2));
    let ttl = Micros::from_secs(600);
    assert!(is_held(&call(&store, &strategy, "a", acquire(ttl)).await));
    for key in redis.state_keys() {
        redis.cli(&["SET", &key, "something else"]);
        let answer = call(&store, &strategy, "a", acquire(ttl)).await;
        assert!(matches!(&answer, Err(StoreError::Unreadable(_))), "{key}: {answer:?}");
        redis.cli(&["DEL", &key]);
    }
    redis.flush_all();
    redis.flush_scripts();
    assert!(is_held(&call(&store, &strategy, "a", acquire(ttl)).await), "the script is sent again");
}

/// Calls about leases that are ready at the same moment are one script call, whatever their keys are. A key of another
/// kind is the error of its leases alone.
#[tokio::test]
async fn calls_that_are_ready_together_share_a_script_call() {
    let redis = RedisServer::start();
    let store = store(&redis, Clock::System).await;
    let fixed = world::strategy("fixed", world::numbers(3));
    let consumers: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let ask = |consumer, op| {
        let subject = Subject { resource: "r", consumer, ..Subject::default() };
        LeaseAsk { strategy: &fixed, subject, id: "a", op, deadline: None }
    };
    store.lease(&ask("20", acquire(Micros::from_secs(60)))).await.unwrap();
    let records = redis.state_keys().into_iter().find(|key| key.contains("}R")).unwrap();
    store.lease(&ask("20", RELEASE)).await.unwrap();
    redis.cli(&["SET", &records, "mine"]);
    redis.cli(&["CONFIG", "RESETSTAT"]);
    for op in [acquire(Micros::from_secs(60)), RELEASE] {
        let asks: Vec<_> = consumers.iter().map(|consumer| ask(consumer, op)).collect();
        for (number, answer) in join_all(asks.iter().map(|ask| store.lease(ask))).await.iter().enumerate() {
            match answer {
                Err(StoreError::Unreadable(_)) => assert_eq!(number, 20),
                Ok(answer) => assert_eq!(answer.in_flight, u64::from(op != RELEASE), "{number}"),
                Err(error) => panic!("{number}: {error}"),
            }
        }
    }
    let stats: String = redis.query(&["INFO", "commandstats"]);
    assert!(stats.contains("cmdstat_evalsha:calls=2,"), "{stats}");
}
