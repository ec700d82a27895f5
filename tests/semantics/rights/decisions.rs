//! Decisions of each engine, over one limit and over two, plain and under ids.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Op, Rate, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, Part, StoreError, Verdicts};
use weir_testing::{DecideOne as _, rights};
use weir_time::clock::Clock;
use weir_units::Micros;

use super::Guarded;
use crate::support::rules::strategy;

const LIMIT: u64 = 5;

fn strategies() -> Vec<Arc<Strategy>> {
    let (hour, day) = (Micros::from_secs(3600), Micros::from_secs(86_400));
    let bucket = Algorithm::bucket(LIMIT, Rate { count: 1, period: hour }).unwrap();
    let engines = [
        bucket,
        Algorithm::fixed_window(LIMIT, day, false, false).unwrap(),
        Algorithm::interval_refill(LIMIT, 1, hour, false).unwrap(),
        Algorithm::sliding_log(LIMIT, hour).unwrap(),
        Algorithm::sliding_window(LIMIT, Micros::from_secs(86_400 * 365)).unwrap(),
        Algorithm::bucketed_window(LIMIT, day, 6, false).unwrap(),
        Algorithm::bucketed_window(LIMIT, day, 1440, false).unwrap(),
    ];
    let named = |name: String, limits: &[(&str, &[Field], Algorithm)]| {
        Arc::new(strategy(&name, limits, FailurePolicy::Error))
    };
    let by: &[Field] = &[Field::Resource];
    let alone = engines.iter().enumerate().map(|(n, it)| named(format!("one{n}"), &[("a", by, *it)]));
    let pairs = engines.iter().enumerate().flat_map(|(n, it)| {
        let (first, last) = ([("a", by, bucket), ("b", by, *it)], [("a", by, *it), ("b", by, bucket)]);
        [named(format!("first{n}"), &first), named(format!("last{n}"), &last)]
    });
    alone.chain(pairs).collect()
}

/// Calls for one resource, and what they have charged by what was answered.
struct Caller<'a> {
    store: &'a RedisStore,
    strategy: &'a Arc<Strategy>,
    resource: &'a str,
    used: u64,
    known: Vec<&'static str>,
}

impl Caller<'_> {
    async fn ask(&mut self, op: Op, id: &'static str) -> Result<Verdict, StoreError> {
        let subject = Subject { resource: self.resource, consumer: "", ..Subject::default() };
        let part = Part { id, ..Part::ALL };
        let part = (!id.is_empty()).then_some(&part);
        let decision = Decision { part, ..Decision::new(self.strategy, subject, op, &[]) };
        let mut out = Verdicts::default();
        self.store.decide_one(&decision, op, &[1], &mut out).await?;
        let verdict = out.decisions[0];
        let counts = id.is_empty() || !self.known.contains(&id);
        if verdict.allowed && counts {
            self.used = if op == Op::Refund { self.used.saturating_sub(1) } else { self.used + 1 };
            self.known.push(id);
        }
        Ok(verdict)
    }
}

#[tokio::test]
async fn a_missing_right_admits_and_charges_nothing() {
    let guarded = Guarded::start(&[]);
    let store = guarded.store(Clock::System).await;
    let mut refusals = 0;
    for strategy in strategies() {
        for right in rights::of_decisions() {
            let resource = format!("{}{right}", strategy.name());
            let mut caller = Caller {
                store: &store,
                strategy: &strategy,
                resource: &resource,
                used: 0,
                known: Vec::new(),
            };
            caller.ask(Op::Charge, "").await.unwrap();
            caller.ask(Op::Charge, "before").await.unwrap();
            guarded.withdraw(right);
            for (op, id) in [
                (Op::Charge, ""),
                (Op::Charge, "one"),
                (Op::Refund, ""),
                (Op::Refund, "back"),
                (Op::Refund, "back"),
                (Op::Charge, "before"),
                (Op::Charge, ""),
            ] {
                if let Err(error) = caller.ask(op, id).await {
                    assert!(matches!(error, StoreError::Refused(_)), "{resource} {op:?}: {error}");
                    refusals += 1;
                }
            }
            guarded.grant_all();
            for (op, id) in [(Op::Charge, "one"), (Op::Refund, "back"), (Op::Charge, "before")] {
                caller.ask(op, id).await.unwrap();
            }
            while caller.ask(Op::Charge, "").await.unwrap().allowed {}
            assert_eq!(caller.used, LIMIT, "{resource}");
        }
    }
    assert!(refusals > 500, "{refusals}");
    for key in guarded.redis.state_keys() {
        assert!(guarded.redis.pttl(&key) > 0, "{key} has no expiry");
    }
}
