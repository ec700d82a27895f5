//! Leases in the memory store: they are never evicted, and count in the budget.

use std::sync::Arc;

use weir_config::MemoryConfig;
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_leases::model::{LeaseOp, LeaseOutcome, LeaseRefusal, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore as _, ProcessLeases};
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::world::{self, START};

const BUDGET: usize = 1 << 20;

async fn call(leases: &ProcessLeases, strategy: &Arc<Strategy>, consumer: &str, op: LeaseOp) -> LeaseOutcome {
    let subject = Subject { resource: "r", consumer, ..Subject::default() };
    let ask = LeaseAsk { strategy, subject, id: "lease", op, deadline: None };
    leases.lease(&ask).await.unwrap().outcome
}

/// A used-up budget refuses new acquisitions and loses no lease. Ended and released leases free it.
#[tokio::test]
async fn a_full_budget_refuses_and_evicts_nothing() {
    let clock = ManualClock::at(Micros(START));
    let config = MemoryConfig { budget: BUDGET, ..MemoryConfig::default() };
    let store = MemoryStore::new(&config, Clock::Manual(clock.clone()));
    let leases = ProcessLeases::new(store.states());
    let empty = store.stats().bytes;
    let strategy = world::strategy("exports", world::numbers(1));
    let acquire = LeaseOp::Acquire { weight: 1, ttl: Micros::from_secs(30) };
    let full = LeaseOutcome::Refused { refusal: LeaseRefusal::NoMemory, bound: None };
    let mut granted = 0;
    while call(&leases, &strategy, &granted.to_string(), acquire).await != full {
        granted += 1;
        assert!(granted < 10_000, "the budget bounds nothing");
    }
    assert!(granted > 500, "only {granted}");
    let stats = store.stats();
    assert!(stats.bytes <= BUDGET && stats.bytes > BUDGET * 9 / 10, "{stats:?}");
    assert_eq!((stats.keys, stats.evictions, stats.refusals), (granted, 0, 1));
    let renew = LeaseOp::Renew { ttl: Micros::from_secs(30) };
    for consumer in 0..granted {
        let outcome = call(&leases, &strategy, &consumer.to_string(), renew).await;
        assert!(matches!(outcome, LeaseOutcome::Held { .. }), "{consumer}: {outcome:?}");
    }
    let release = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
    assert_eq!(call(&leases, &strategy, "7", release).await, LeaseOutcome::Released);
    assert!(matches!(call(&leases, &strategy, "one more", acquire).await, LeaseOutcome::Held { .. }));
    assert_eq!(call(&leases, &strategy, "and another", acquire).await, full);
    // No call touches these keys again: the sweep drops the ended leases.
    clock.set(Micros(START + 30_000_000));
    for _ in 0..16 {
        store.sweep();
    }
    let stats = store.stats();
    assert_eq!((stats.keys, stats.bytes), (0, empty), "{stats:?}");
}

/// Asking for what is not there makes no key.
#[tokio::test]
async fn only_held_leases_take_memory() {
    let clock = ManualClock::at(Micros(START));
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
    let leases = ProcessLeases::new(store.states());
    let empty = store.stats();
    let strategy = world::strategy("exports", world::numbers(1));
    let release = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
    for (consumer, op) in [
        ("a", release),
        ("b", LeaseOp::Renew { ttl: Micros(1) }),
        ("c", LeaseOp::Acquire { weight: 2, ttl: Micros(1) }),
    ] {
        call(&leases, &strategy, consumer, op).await;
    }
    assert_eq!(store.stats(), empty);
}
