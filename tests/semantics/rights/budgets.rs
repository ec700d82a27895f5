//! Holds and settlements over every engine: what is refused for a missing right changes nothing, and can be repeated.

use weir_core::algorithm::{Algorithm, Rate};
use weir_store::redis::RedisStore;
use weir_store::{BudgetOp, LimitSet, StoreError};
use weir_testing::rights;
use weir_time::clock::Clock;
use weir_units::Micros;

use super::Guarded;
use crate::budgets::paired::Paired;

const LIMIT: u64 = 9;
const HOLD: Option<Micros> = Some(Micros::from_secs(100));

fn engines() -> Vec<(&'static str, Algorithm)> {
    let (hour, day) = (Micros::from_secs(3600), Micros::from_secs(86_400));
    vec![
        ("bucket", Algorithm::bucket(LIMIT, Rate { count: 1, period: hour }).unwrap()),
        ("window", Algorithm::fixed_window(LIMIT, day, true, false).unwrap()),
        ("interval", Algorithm::interval_refill(LIMIT, 1, hour, false).unwrap()),
        ("log", Algorithm::sliding_log(LIMIT, hour).unwrap()),
        ("sliding", Algorithm::sliding_window(LIMIT, Micros::from_secs(86_400 * 365)).unwrap()),
        ("slots", Algorithm::bucketed_window(LIMIT, day, 6, false).unwrap()),
        ("sparse", Algorithm::bucketed_window(LIMIT, day, 1440, false).unwrap()),
    ]
}

#[tokio::test]
async fn a_missing_right_changes_nothing() {
    let guarded = Guarded::start(&[]);
    let store = guarded.store(Clock::System).await;
    let mut refusals = 0;
    for (name, algorithm) in engines() {
        let first = Algorithm::fixed_window(100, Micros::from_secs(86_400), true, false).unwrap();
        for right in rights::of_decisions() {
            for order in [[first, algorithm, first], [first, first, algorithm]] {
                let consumer = format!("{name} {right} {}", order[1] == algorithm);
                refusals += withdrawn(&guarded, &store, right, (&consumer, &order)).await;
            }
        }
    }
    println!("{refusals} refusals");
    assert!(refusals > 300, "{refusals}");
    for key in guarded.redis.state_keys() {
        assert!(guarded.redis.pttl(&key) > 0, "{key} has no expiry");
    }
}

/// Calls before, while and after a right is missing; returns how many were refused.
async fn withdrawn(
    guarded: &Guarded,
    store: &RedisStore,
    right: &str,
    (consumer, algorithms): (&str, &[Algorithm]),
) -> usize {
    let mut paired = Paired::new(store, consumer, algorithms);
    for id in ["a", "b"] {
        paired.ask(2, id, HOLD).await.unwrap();
    }
    paired.ask(1, "", None).await.unwrap();
    guarded.withdraw(right);
    let mut refusals = 0;
    for _ in 0..2 {
        let refused = [
            paired.settle(1, "a").await,
            paired.ask(1, "c", HOLD).await,
            paired.ask(1, "plain", None).await,
            paired.ask(1, "", None).await,
            paired.debit(1, "").await,
            paired.debit(1, "debit").await,
            paired.tell(BudgetOp::Refund(1, LimitSet::ALL), "").await,
            paired.settle(0, "b").await,
            paired.settle(1, "unknown").await,
            paired.tell(BudgetOp::Reset(LimitSet::NONE.with(1)), "").await,
        ];
        for error in refused.into_iter().filter_map(Result::err) {
            assert!(matches!(error, StoreError::Refused(_)), "{consumer}: {error}");
            refusals += 1;
        }
    }
    guarded.grant_all();
    for (units, id) in [(1, "a"), (0, "b"), (1, "unknown")] {
        paired.settle(units, id).await.unwrap();
    }
    paired.ask(1, "c", HOLD).await.unwrap();
    paired.ask(1, "plain", None).await.unwrap();
    paired.debit(1, "debit").await.unwrap();
    while paired.ask(1, "", None).await.unwrap().allowed {}
    refusals
}
