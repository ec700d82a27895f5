//! A simulation decides as the pure driver does, whatever the calls.

use std::sync::Arc;

use proptest::prelude::*;
use weir::simulation::{START, SimulatedCall, SimulatedCalls, simulate};
use weir_core::algorithm::Op;
use weir_core::strategy::{FailurePolicy, Limit, Resources, Rules, Scope};
use weir_units::Micros;

use crate::properties::machine::Machine;
use crate::properties::random::{config, limits};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_simulation_decides_as_the_pure_driver_does(
        limits in limits().prop_filter("spread windows depend on the name", |limits| !limits.iter().any(|one| one.is_spread())),
        pauses in prop::collection::vec((0..3_000_000_u64, 0..4_u64), 1..80),
    ) {
        let named = |(index, algorithm)| Limit { name: format!("limit-{index}").into(), scope: Scope::default(), algorithm };
        let all: Vec<_> = limits.iter().copied().enumerate().map(named).collect();
        let strategy = weir_core::strategy::Strategy::new("simulated", all, true, FailurePolicy::Error).unwrap();
        let rules = Arc::new(Rules::new(vec![strategy], Resources::default()));
        let mut calls = SimulatedCalls { subjects: vec![("r".into(), "c".into())], ..SimulatedCalls::default() };
        let mut at = 0;
        for (pause, cost) in pauses {
            at += pause;
            calls.calls.push(SimulatedCall { at: Micros(at), subject: 0, cost, costs: 0 });
        }
        let simulated = simulate(&rules, "simulated", &[], &calls).unwrap();
        let mut machine = Machine::new(limits);
        let expected: Vec<bool> = calls.calls.iter().map(|call| {
            machine.now = Micros(START.0 + call.at.0);
            machine.decide(Op::Charge, call.cost).verdict.allowed
        }).collect();
        prop_assert_eq!(&simulated.admitted, &expected);
        prop_assert_eq!(simulated.allowed, expected.iter().filter(|admitted| **admitted).count() as u64);
        prop_assert_eq!(simulated.denied, expected.iter().filter(|admitted| !**admitted).count() as u64);
    }

    /// Looked for in the slow way: every window that begins with a call.
    #[test]
    fn most_in_any_window_is_the_most(
        calls in prop::collection::vec((0..20_u64, 1..5_u64, any::<bool>()), 1..60),
        window in 1..60_u64,
    ) {
        let mut at = 0;
        let mut all = SimulatedCalls::default();
        let mut result = weir::simulation::SimulatedStrategy::default();
        for (pause, cost, admitted) in calls {
            at += pause;
            all.calls.push(SimulatedCall { at: Micros(at), subject: 0, cost, costs: 0 });
            result.admitted.push(admitted);
        }
        let admitted = || all.calls.iter().zip(&result.admitted).filter(|(_, admitted)| **admitted).map(|(call, _)| call);
        let from = |first: &SimulatedCall| {
            let within = |call: &&SimulatedCall| (first.at.0..first.at.0 + window).contains(&call.at.0);
            admitted().filter(within).map(|call| call.cost).sum::<u64>()
        };
        let most = admitted().map(from).max().unwrap_or(0);
        prop_assert_eq!(result.most_in(Micros(window), &all), most);
    }
}
