//! Old state under a new configuration, row by row and on both stores: nothing becomes unlimited, nothing
//! negative, and every wait ends. `properties/changed.rs` says it of random limits.

mod reset;
mod rows;

use std::sync::Arc;
use weir_testing::DecideOne as _;

use weir_config::{Config, ConfigOverrides, MemoryConfig, Topology};
use weir_core::algorithm::{LimitVerdict, Op};
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_store::memory::MemoryStore;
use weir_store::{Decision, Store, Verdicts};
use weir_time::clock::{Clock, ManualClock};
use weir_units::{Micros, Retry};

use self::rows::{NEVER, Row};
use crate::support;

/// 2024-01-01T00:00:00Z.
const START: u64 = 1_704_067_200_000_000;
const SECOND: u64 = 1_000_000;

/// The store that has the old configuration, and the one that has the new; both of the same state.
struct Stores<S> {
    old: S,
    new: S,
    clock: ManualClock,
}

#[tokio::test]
async fn memory() {
    let clock = ManualClock::at(Micros(START));
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
    check_all(&Stores { old: store.clone(), new: store, clock }).await;
}

/// Two services of which the second is started later: they share nothing but what Redis holds.
#[tokio::test]
async fn redis() {
    let (redis, clock) = (support::shared_redis(), ManualClock::at(Micros(START)));
    let store = || support::redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone()));
    let (old, new) = (store().await, store().await);
    check_all(&Stores { old, new, clock }).await;
}

#[tokio::test]
async fn cluster() {
    let (cluster, clock) = (support::shared_cluster(), ManualClock::at(Micros(START)));
    let store = || support::redis_store(cluster.urls(), Topology::Cluster, Clock::Manual(clock.clone()));
    let (old, new) = (store().await, store().await);
    check_all(&Stores { old, new, clock }).await;
}

async fn check_all<S: Store>(stores: &Stores<S>) {
    let mut wrong = Vec::new();
    for (number, row) in rows::ROWS.iter().enumerate() {
        let case = Case { stores, row, consumer: format!("row {number}") };
        let observed = case.observe().await;
        let expected = (row.remaining, row.retry, row.reset);
        if observed != expected {
            let Row { old, new, .. } = row;
            wrong.push(format!("{old} → {new}: remaining, retry, reset are {observed:?}, not {expected:?}"));
            continue;
        }
        case.it_stays_a_limit().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

struct Case<'a, S> {
    stores: &'a Stores<S>,
    row: &'a Row,
    consumer: String,
}

impl<S: Store> Case<'_, S> {
    /// Spends under the old configuration; what the new one says then. Times are in milliseconds.
    async fn observe(&self) -> (u64, u64, u64) {
        for &(at, cost) in self.row.spent {
            self.ask(&self.stores.old, self.row.old, Op::Charge, cost, at * 1000).await;
        }
        let after = self.row.at * 1000;
        let none = self.peek(0, after).await;
        let beyond = self.peek(none.remaining + 1, after).await;
        let Retry::After(retry) = beyond.retry else { return (none.remaining, NEVER, NEVER) };
        (none.remaining, retry.0 / 1000, none.reset_after.0 / 1000)
    }

    /// `remaining` passes. One unit more passes after `retry_after`, and not a microsecond earlier. After
    /// `reset_after` the limit is full again. The old configuration sees what was charged under the new one.
    async fn it_stays_a_limit(&self) {
        let (row, start) = (self.row, self.row.at * 1000);
        let limit = strategy(row.new).algorithms()[0].limit();
        let waits = [1, limit.div_ceil(2), limit];
        for cost in waits {
            let verdict = self.peek(cost, start).await;
            if let Retry::After(Micros(wait)) = verdict.retry {
                assert!(wait > 0 && wait <= LONGEST, "{} → {}: {cost} after {wait}", row.old, row.new);
                assert!(!self.peek(cost, start + wait - 1).await.fits(), "{} → {}", row.old, row.new);
                assert!(self.peek(cost, start + wait).await.fits(), "{} → {}: {cost}", row.old, row.new);
            }
        }
        for left in (0..row.remaining).rev() {
            let charged = self.ask(&self.stores.new, row.new, Op::Charge, 1, start).await;
            // Only the first may come too early for a gap.
            let gap = charged.cause == Some(weir_core::algorithm::Cause::MinGap);
            assert!(gap || (charged.fits() && charged.remaining == left), "{} → {}", row.old, row.new);
            if gap {
                return;
            }
        }
        let denied = self.ask(&self.stores.new, row.new, Op::Charge, 1, start).await;
        assert!(!denied.fits() && denied.remaining == 0, "{} → {}: one too many", row.old, row.new);
        let back = self.ask(&self.stores.old, row.old, Op::Peek, 0, start).await;
        let old = strategy(row.old).algorithms()[0].limit();
        assert!(back.remaining <= old, "{} → {} and back", row.old, row.new);
        let fresh = start + denied.reset_after.0;
        assert!(
            self.peek(limit, fresh).await.fits(),
            "{} → {}: not full after reset_after",
            row.old,
            row.new
        );
    }

    async fn peek(&self, cost: u64, at: u64) -> LimitVerdict {
        self.ask(&self.stores.new, self.row.new, Op::Peek, cost, at).await
    }

    async fn ask(&self, store: &S, algorithm: &str, op: Op, cost: u64, at: u64) -> LimitVerdict {
        self.stores.clock.set(Micros(START + at));
        let subject = Subject { resource: "changed", consumer: &self.consumer, ..Subject::default() };
        let strategy = strategy(algorithm);
        let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
        let mut out = Verdicts::default();
        store.decide_one(&decision, op, &[cost], &mut out).await.unwrap();
        out.limits[0]
    }
}

/// No wait of these rows is longer.
const LONGEST: u64 = 1000 * SECOND;

fn strategy(algorithm: &str) -> Arc<Strategy> {
    let text =
        format!("strategies: {{ s: {{ limits: [{{ name: l, per: [resource, consumer], {algorithm} }}] }} }}");
    let config = Config::parse(&text, "the row", &ConfigOverrides::default());
    let config = config.unwrap_or_else(|errors| panic!("{algorithm}:\n{errors}"));
    Arc::clone(&config.rules.strategies()[0])
}
