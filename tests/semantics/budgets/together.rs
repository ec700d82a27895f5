//! Callers at once, whose decisions share script calls.

use futures_util::future::join_all;
use weir_config::Topology;
use weir_core::algorithm::Algorithm;
use weir_core::algorithm::budget::{Ask, AskedCost, BudgetVerdict, SettleOutcome, SettledCosts};
use weir_store::{BudgetDecision, BudgetOp, Store as _, StoreError};
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
    let calls: String = redis.query(&["INFO", "commandstats"]);
    let calls = calls.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap();
    let calls: usize = calls.split(',').next().unwrap().parse().unwrap();
    assert!(calls < CALLERS / 2, "{calls} script calls");
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
