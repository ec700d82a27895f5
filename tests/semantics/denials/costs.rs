//! Denials over limits with costs of their own: known for the same costs, until a state changes; never where calls are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use weir_config::MemoryConfig;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetVerdict, CostedLimits, HoldBounds, LimitCost, SettledCosts,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{Field, Strategy};
use weir_store::denials::{Denials, DenialsShared};
use weir_store::memory::MemoryStore;
use weir_store::{BudgetDecision, BudgetOp, LimitSet, Store};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::Micros;

use super::START;
use crate::support::Counting;

const SECOND: u64 = 1_000_000;

/// The same limits twice: behind a cache, and beside it.
struct Both {
    clock: ManualClock,
    asked: Arc<AtomicUsize>,
    cached: Denials<Counting>,
    plain: MemoryStore,
    strategy: Arc<Strategy>,
    costed: Arc<CostedLimits>,
}

impl Both {
    /// The first limit takes the cost `a`, and each other one `b`.
    fn new(algorithms: &[Algorithm], hold: Option<HoldBounds>) -> Self {
        let clock = ManualClock::at(START);
        let shared = Clock::Manual(clock.clone());
        let store = || MemoryStore::new(&MemoryConfig::default(), shared.clone());
        let asked = Arc::new(AtomicUsize::new(0));
        let denials = DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&shared));
        let costs = algorithms.iter().enumerate().map(|(index, algorithm)| BudgetLimit {
            algorithm: *algorithm,
            cost: LimitCost::Named(index.min(1)),
            at_once: false,
            near_percent: Some(80),
        });
        let names = ["a", "b"].into_iter().take(algorithms.len()).map(Into::into).collect();
        let costed = CostedLimits { limits: costs.collect(), names, hold };
        let (cached, plain) = (denials.before(Counting(store(), Arc::clone(&asked))), store());
        let strategy = weir_testing::rules::numbered("costs", &[Field::Consumer], algorithms);
        Self { clock, asked, cached, plain, strategy, costed: Arc::new(costed) }
    }

    /// Decides on both, which must agree. Returns the answer, and whether the store was asked.
    async fn decide(&self, op: BudgetOp<'_>) -> (BudgetVerdict, bool) {
        let before = self.asked.load(SeqCst);
        let subject = Subject { consumer: "bob", ..Subject::default() };
        let (strategy, costed) = (&self.strategy, &self.costed);
        let decision = BudgetDecision { strategy, costed, subject, op, id: "", deadline: None, caller: 0 };
        let mut cached = self.cached.decide_costs(&decision).verdicts().await.unwrap().budget.unwrap();
        let mut plain = self.plain.decide_costs(&decision).verdicts().await.unwrap().budget.unwrap();
        // What a limit had before is only asked where something is charged. A cached denial has that of its question.
        if !plain.allowed {
            cached.limits.iter_mut().chain(&mut plain.limits).for_each(|limit| limit.level_before = 0);
        }
        assert_eq!(cached, plain, "{op:?}");
        (*cached, self.asked.load(SeqCst) > before)
    }

    async fn ask(&self, costs: &[u64]) -> (bool, bool) {
        let (verdict, asked) = self.decide(BudgetOp::Ask(&ask(costs))).await;
        (verdict.allowed, asked)
    }

    fn pass(&self, micros: u64) {
        self.clock.set(Micros(self.clock.now().0 + micros));
    }
}

fn ask(costs: &[u64]) -> Ask {
    let costs = costs.iter().map(|cost| AskedCost { cost: *cost, at_least: None }).collect();
    Ask { costs, cost: 1, peek: false, has_id: false, hold_for: None }
}

fn window(limit: u64) -> Algorithm {
    Algorithm::fixed_window(limit, Micros(10 * SECOND), false, false).unwrap()
}

#[tokio::test]
async fn a_denial_is_known_for_the_same_costs() {
    let both = Both::new(&[window(10)], None);
    assert_eq!(both.ask(&[10]).await, (true, true));
    assert_eq!(both.ask(&[3]).await, (false, true));
    assert_eq!(both.ask(&[3]).await, (false, false));
    assert_eq!(both.ask(&[4]).await, (false, true), "another cost");
    both.pass(9 * SECOND);
    assert_eq!(both.ask(&[3]).await, (false, false));
    both.pass(SECOND);
    assert_eq!(both.ask(&[3]).await, (true, true), "the window has ended");
}

#[tokio::test]
async fn what_changes_a_state_ends_denials() {
    let both = Both::new(&[window(10)], None);
    let used = SettledCosts { costs: [Some(1)].into_iter().collect(), cost: None };
    for change in [BudgetOp::Refund(5, LimitSet::ALL), BudgetOp::Reset(LimitSet::ALL), BudgetOp::Debit(&used)]
    {
        both.decide(BudgetOp::Debit(&SettledCosts { costs: [Some(10)].into_iter().collect(), cost: None }))
            .await;
        both.ask(&[3]).await;
        assert_eq!(both.ask(&[3]).await, (false, false));
        both.decide(change).await;
        assert!(both.ask(&[3]).await.1, "{change:?}");
        both.decide(BudgetOp::Reset(LimitSet::ALL)).await;
    }
}

/// A call whose cost of one limit is 0 charges the other one, so a denial by the first is known for some milliseconds.
#[tokio::test]
async fn beside_another_limit_a_denial_is_known_briefly() {
    let both = Both::new(&[window(10), window(100)], None);
    both.ask(&[10, 1]).await;
    assert_eq!(both.ask(&[3, 1]).await, (false, true));
    assert_eq!(both.ask(&[3, 1]).await, (false, false));
    assert_eq!(both.ask(&[0, 1]).await, (true, true));
    assert_eq!(both.ask(&[3, 1]).await, (false, true));
    both.pass(10_000);
    assert_eq!(both.ask(&[3, 1]).await, (false, true));
}

#[tokio::test]
async fn where_calls_are_held_no_denial_is_known() {
    let hold = HoldBounds { max: Micros(16 * SECOND), known_for: Micros(60 * SECOND) };
    let both = Both::new(&[window(10)], Some(hold));
    both.ask(&[10]).await;
    for _ in 0..3 {
        assert_eq!(both.ask(&[3]).await, (false, true));
    }
}

/// Random questions and changes, at times between which all that is cached for milliseconds has gone: no answer is another one.
#[tokio::test]
async fn answers_are_those_of_the_store() {
    let rate = Rate { count: 3, period: Micros(SECOND) };
    let bucket = Algorithm::bucket(20, rate).unwrap();
    let sliding = Algorithm::sliding_window(15, Micros(5 * SECOND)).unwrap();
    let log = Algorithm::sliding_log(15, Micros(5 * SECOND)).unwrap();
    let mut known = 0;
    for limits in [&[bucket][..], &[window(12)], &[sliding], &[log], &[window(12), bucket], &[log, sliding]] {
        let both = Both::new(limits, None);
        let mut number = 7_u64;
        let mut roll = |sides: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % sides
        };
        for _ in 0..3_000 {
            both.pass([0, 0, 0, 20_000, SECOND / 3, 2 * SECOND][roll(6) as usize]);
            let costs: Vec<u64> = (0..limits.len().min(2)).map(|_| roll(8)).collect();
            let used = SettledCosts { costs: costs.iter().map(|cost| Some(*cost)).collect(), cost: None };
            let asked = Ask { peek: roll(5) == 0, ..ask(&costs) };
            let op = match roll(20) {
                0 => BudgetOp::Debit(&used),
                1 => BudgetOp::Refund(2, LimitSet::ALL),
                2 if roll(4) == 0 => BudgetOp::Reset(LimitSet::ALL),
                _ => BudgetOp::Ask(&asked),
            };
            known += usize::from(!both.decide(op).await.1);
        }
    }
    assert!(known > 500, "{known}");
}
