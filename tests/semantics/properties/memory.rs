//! The memory store answers what the pure driver answers, whatever keys share its tables.

use std::sync::Arc;
use weir_testing::DecideOne as _;
use weir_testing::rules::numbered_limits;

use proptest::prelude::*;
use weir_config::MemoryConfig;
use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field};
use weir_store::memory::MemoryStore;
use weir_store::{Decision, Verdicts};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::machine::{Named, START};
use super::random::{config, limits, op, step};

type Rules = Arc<weir_core::strategy::Strategy>;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn memory_agrees_with_the_pure_driver(
        rules in rules("random"), calls in prop::collection::vec((step(op()), 0..3_u8, 0..3_u8), 1..60),
    ) {
        let clock = ManualClock::at(Micros(START));
        let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut pure = Named::new(&rules);
        for (step, resource, consumer) in &calls {
            let names = [format!("resource {resource}"), format!("consumer {consumer}")];
            let subject = Subject { resource: &names[0], consumer: &names[1], ..Subject::default() };
            let (op, cost) = pure.machine.advance(step);
            let expected = pure.decide(&rules, &subject, op, cost);
            clock.set(pure.machine.now);
            let decision = Decision::new(&rules, subject, Op::Peek, &[]);
            let mut out = Verdicts::default();
            runtime.block_on(store.decide_one(&decision, op, &[cost], &mut out)).unwrap();
            let (verdict, limits) = out.get(0).unwrap();
            prop_assert_eq!((*verdict, limits.to_vec()), (expected.verdict, expected.limits));
        }
    }
}

/// One limit or several, each counted by a scope of its own.
pub fn rules(name: &'static str) -> impl Strategy<Value = Rules> {
    let scope = prop::sample::subsequence(vec![Field::Resource, Field::Consumer], 0..=2);
    (limits(), prop::collection::vec(scope, 4)).prop_map(move |(limits, scopes)| {
        let limits = numbered_limits(scopes.into_iter().zip(limits));
        Arc::new(weir_core::strategy::Strategy::new(name, limits, true, FailurePolicy::Error).unwrap())
    })
}
