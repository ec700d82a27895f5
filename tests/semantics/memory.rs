//! The bounds of the memory store: bytes per key, the budget, which keys are evicted for which others. Many threads on
//! one key admit exactly its limit.

mod budget;
mod clock_steps;
mod concurrent;
mod expiring;
mod id_share;
mod ids_and_steps;
#[cfg(feature = "envoy")]
mod served;
mod share;
mod size;
mod together;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use weir_testing::DecideOne as _;

use weir_config::{MemoryConfig, WhenFull};
use weir_core::algorithm::{Algorithm, Op, Rate, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Strategy};
use weir_store::memory::MemoryStore;
use weir_store::{Decision, StoreError, Verdicts};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use crate::support::rules::strategy;

/// 2024-01-01T00:00:00Z.
const START: Micros = Micros(1_704_067_200_000_000);

const SECOND: Micros = Micros::from_secs(1);
const HOUR: Micros = Micros::from_secs(3600);
const MIB: usize = 1 << 20;

/// A store within a budget, on a clock that stands still, and what is asked of it.
struct Fixture {
    store: MemoryStore,
    clock: ManualClock,
}

impl Fixture {
    fn new(budget: usize, when_full: WhenFull) -> Self {
        let clock = ManualClock::at(START);
        let config = MemoryConfig { budget, when_full, ..MemoryConfig::default() };
        let store = MemoryStore::new(&config, Clock::Manual(clock.clone()));
        Self { store, clock }
    }

    fn pass(&self, time: Micros) {
        self.clock.set(Micros(self.clock.now().0 + time.0));
    }

    /// Charges `cost` to `consumer`; whether it was admitted.
    fn charge(&self, strategy: &Arc<Strategy>, consumer: &str, cost: u64) -> Result<bool, StoreError> {
        decide_for(&self.store, strategy, consumer, Op::Charge, cost).map(|verdict| verdict.allowed)
    }

    /// Returns true if `cost` would be admitted.
    fn peek(&self, strategy: &Arc<Strategy>, consumer: &str, cost: u64) -> bool {
        decide_for(&self.store, strategy, consumer, Op::Peek, cost).unwrap().allowed
    }
}

fn decide_for(
    store: &MemoryStore,
    strategy: &Arc<Strategy>,
    consumer: &str,
    op: Op,
    cost: u64,
) -> Result<Verdict, StoreError> {
    let subject = Subject { resource: "", consumer, ..Subject::default() };
    let decision = Decision::new(strategy, subject, Op::Peek, &[]);
    decide(store, &decision, op, cost).map(|out| *out.get(0).unwrap().0)
}

/// The memory store never waits, so its future is ready at once.
fn decide(store: &MemoryStore, decision: &Decision<'_>, op: Op, cost: u64) -> Result<Verdicts, StoreError> {
    let mut out = Verdicts::default();
    let costs = [cost];
    let decided = {
        let future = pin!(store.decide_one(decision, op, &costs, &mut out));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(decided) => decided,
            Poll::Pending => panic!("the memory store waits"),
        }
    };
    decided.map(|()| out)
}

/// One limit per consumer.
fn per_consumer(name: &str, algorithm: Algorithm) -> Arc<Strategy> {
    Arc::new(strategy(name, &[("each", &[Field::Consumer], algorithm)], FailurePolicy::Error))
}

/// A bucket of ten that comes back at one a minute.
fn slow_bucket() -> Arc<Strategy> {
    let rate = Rate { count: 1, period: Micros::from_secs(60) };
    per_consumer("slow", Algorithm::bucket(10, rate).unwrap())
}

/// A bucket of ten that is full again within a second.
fn quick_bucket() -> Arc<Strategy> {
    let rate = Rate { count: 10, period: SECOND };
    per_consumer("quick", Algorithm::bucket(10, rate).unwrap())
}

fn hourly_log(limit: u64) -> Arc<Strategy> {
    per_consumer("log", Algorithm::sliding_log(limit, HOUR).unwrap())
}

fn gate_of_a_second() -> Arc<Strategy> {
    per_consumer("gate", Algorithm::uniform(SECOND).unwrap())
}
