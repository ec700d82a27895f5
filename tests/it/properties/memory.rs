//! The memory store answers what the pure driver answers, whatever keys share its tables.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use weir::algorithm::{Algorithm, LimitVerdict, Op, State, Verdict};
use weir::clock::{Clock, ManualClock};
use weir::config::MemoryConfig;
use weir::key::{Subject, write_name};
use weir::store::memory::MemoryStore;
use weir::store::{Decision, Store, Verdicts};
use weir::strategy::{FailurePolicy, Field, Limit, Scope};
use weir::units::Micros;

use super::machine::{Machine, START};
use super::random::{Step, config, limits, op, step};

type Rules = Arc<weir::strategy::Strategy>;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn memory_agrees_with_the_pure_driver(
        rules in rules(), calls in prop::collection::vec((step(op()), 0..3_u8, 0..3_u8), 1..60),
    ) {
        let clock = ManualClock::at(Micros(START));
        let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut pure = Pure { machine: Machine::new(rules.algorithms().to_vec()), states: HashMap::new() };
        for (step, resource, consumer) in &calls {
            let names = [format!("resource {resource}"), format!("consumer {consumer}")];
            let subject = Subject { resource: &names[0], consumer: &names[1], group: None };
            let (op, cost, expected) = pure.decide(&rules, &subject, step);
            clock.set(pure.machine.now);
            let decision = Decision { strategy: &rules, subject, deadline: None };
            let mut out = Verdicts::default();
            runtime.block_on(store.decide(&decision, op, &[cost], &mut out)).unwrap();
            let (verdict, limits) = out.get(0).unwrap();
            prop_assert_eq!((*verdict, limits.to_vec()), expected);
        }
    }
}

/// States by name, as a map has them.
struct Pure {
    machine: Machine,
    states: HashMap<Vec<u8>, State>,
}

impl Pure {
    fn decide(
        &mut self,
        rules: &Rules,
        subject: &Subject<'_>,
        step: &Step,
    ) -> (Op, u64, (Verdict, Vec<LimitVerdict>)) {
        let name = |limit: &Limit| {
            let mut name = Vec::new();
            write_name(&mut name, rules, limit, subject);
            name
        };
        let names: Vec<_> = rules.limits().iter().map(name).collect();
        self.machine.states = names.iter().map(|name| self.states.remove(name)).collect();
        let (op, cost) = self.machine.advance(step);
        let answer = self.machine.decide(op, cost);
        for (name, state) in names.into_iter().zip(&self.machine.states) {
            if let Some(state) = state {
                self.states.insert(name, state.clone());
            }
        }
        (op, cost, (answer.verdict, answer.limits))
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    let scope = prop::sample::subsequence(vec![Field::Resource, Field::Consumer], 0..=2);
    (limits(), prop::collection::vec(scope, 4)).prop_map(|(limits, scopes)| {
        let named = |(index, (algorithm, scope)): (usize, (Algorithm, Vec<Field>))| Limit {
            name: format!("limit-{index}").into(),
            scope: Scope::of(&scope),
            algorithm,
        };
        let limits = limits.into_iter().zip(scopes).enumerate().map(named).collect();
        Arc::new(weir::strategy::Strategy::new("random", limits, true, FailurePolicy::Error).unwrap())
    })
}
