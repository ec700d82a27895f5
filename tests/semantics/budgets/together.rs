//! Callers at once, whose decisions share script calls.

use std::sync::Arc;

use futures_util::future::join_all;
use weir_config::Topology;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetVerdict, CostedLimits, LimitCost, SettleOutcome, SettledCosts,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::{BudgetDecision, BudgetOp, Store, StoreError};
use weir_time::clock::Clock;
use weir_units::Micros;

use super::paired::Paired;
use crate::support::{RedisServer, redis_store};

const CALLERS: usize = 500;
const LIMIT: u64 = 90;

/// Half of the callers have one strategy, and half another one.
struct Callers<'s>([Paired<'s>; 2]);

impl Callers<'_> {
    async fn decide(&self, number: usize, op: BudgetOp<'_>) -> Result<BudgetVerdict, StoreError> {
        let (paired, id) = (&self.0[number % 2], format!("call {number}"));
        let decision = BudgetDecision {
            strategy: &paired.strategy,
            costed: &paired.costed,
            subject: paired.subject(),
            op,
            id: &id,
            deadline: None,
            caller: 0,
        };
        paired.store.decide_costs(&decision).verdicts().await.map(|verdicts| *verdicts.budget.unwrap())
    }

    async fn hold(&self, number: usize) -> BudgetVerdict {
        let costs = [AskedCost { cost: 3, at_least: None }].into_iter().collect();
        let hold_for = Some(Micros::from_secs(100));
        let asked = Ask { costs, cost: 1, peek: false, has_id: true, hold_for };
        self.decide(number, BudgetOp::Ask(&asked)).await.unwrap()
    }

    async fn settle(&self, number: usize) -> BudgetVerdict {
        let used = SettledCosts { costs: [Some(1)].into_iter().collect(), cost: None };
        self.decide(number, BudgetOp::Settle(&used)).await.unwrap()
    }
}

#[tokio::test]
async fn callers_at_once_get_no_more_than_the_limit() {
    let redis = RedisServer::start();
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::System).await;
    let day = Micros::from_secs(86_400);
    let limits = [1_000_000, LIMIT].map(|limit| Algorithm::fixed_window(limit, day, true, false).unwrap());
    let callers = Callers(["bob", "eve"].map(|consumer| Paired::new(&store, consumer, &limits)));
    redis.cli(&["CONFIG", "RESETSTAT"]);
    let held = join_all((0..CALLERS).map(|number| callers.hold(number))).await;
    let calls = redis.script_calls();
    assert!((1..CALLERS as u64 / 2).contains(&calls), "{calls} script calls");
    for strategy in 0..2 {
        let own = held.iter().skip(strategy).step_by(2);
        assert_eq!(own.filter(|verdict| verdict.allowed).count() as u64, LIMIT / 3);
    }
    let again = join_all((0..CALLERS).map(|number| callers.hold(number))).await;
    for (first, again) in held.iter().zip(&again).filter(|(first, _)| first.allowed) {
        assert_eq!((first.applied, again.applied, again.limits[1].granted), (true, false, Some(3)));
    }
    let settled = join_all((0..CALLERS).map(|number| callers.settle(number))).await;
    for (held, settled) in held.iter().zip(&settled) {
        let outcome = if held.allowed { SettleOutcome::Settled } else { SettleOutcome::Unknown };
        assert_eq!(settled.outcome, Some(outcome));
    }
    for number in 0..2 {
        let limit = callers.settle(number).await.limits[1];
        // All are charged: those that were denied, too, because they say that they used something.
        assert_eq!((limit.held, limit.level_before), (0, CALLERS as u64 / 2));
    }
}

/// The limits of the callers without holds: a bucket under one of two rates, whose states differ, and a window.
fn without_holds(period: Micros) -> (Arc<Strategy>, Arc<CostedLimits>) {
    let bucket = Algorithm::bucket(100, Rate { count: 1, period }).unwrap();
    let window = Algorithm::fixed_window(1_000, Micros::from_secs(86_400), true, false).unwrap();
    let limits = [("tokens", bucket), ("calls", window)];
    let limit = |(name, algorithm): (&str, Algorithm)| Limit {
        name: name.into(),
        scope: Scope::new(&[Field::Consumer]),
        algorithm,
    };
    let costs = [(bucket, LimitCost::Named(0)), (window, LimitCost::Fixed(1))];
    let costs =
        costs.map(|(algorithm, cost)| BudgetLimit { algorithm, cost, at_once: false, near_percent: None });
    let costed = CostedLimits { limits: costs.into(), names: vec!["n".into()], hold: None };
    let limits = limits.map(limit).into();
    (Arc::new(Strategy::new("together", limits, false, FailurePolicy::Error).unwrap()), Arc::new(costed))
}

/// The short path decides the first ones of a call; from the first state of another rate on, the full driver does.
#[tokio::test]
async fn one_call_is_decided_on_both_paths() {
    let redis = RedisServer::start();
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::System).await;
    let rules = [2, 3].map(|days| without_holds(Micros::from_secs(days * 86_400)));
    let charge = async |(strategy, costed): &(Arc<Strategy>, Arc<CostedLimits>), number: usize, cost: u64| {
        let consumer = format!("caller {number}");
        let subject = Subject { consumer: &consumer, ..Subject::default() };
        let costs = [AskedCost { cost, at_least: None }].into_iter().collect();
        let asked = Ask { costs, cost: 1, peek: false, has_id: false, hold_for: None };
        let op = BudgetOp::Ask(&asked);
        let decision = BudgetDecision { strategy, costed, subject, op, id: "", deadline: None, caller: 0 };
        *store.decide_costs(&decision).verdicts().await.unwrap().budget.unwrap()
    };
    // Of every seventh caller 5 were used under the first rate.
    join_all((0..CALLERS).step_by(7).map(|number| charge(&rules[0], number, 5))).await;
    redis.cli(&["CONFIG", "RESETSTAT"]);
    for round in 1..=3 {
        let said = join_all((0..CALLERS).map(|number| charge(&rules[1], number, 3))).await;
        for (number, verdict) in said.iter().enumerate() {
            let (before, calls) = if number % 7 == 0 { (5, 1) } else { (0, 0) };
            let left = [&verdict.limits[0], &verdict.limits[1]].map(|limit| limit.remaining);
            assert_eq!(
                left,
                [100 - before - 3 * round, 1_000 - calls - round],
                "caller {number}, round {round}"
            );
        }
    }
    let calls = redis.script_calls();
    assert!((1..CALLERS as u64).contains(&calls), "{calls} script calls");
}
