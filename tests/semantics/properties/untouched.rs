//! Decisions that change no state; and a decision changes the states of all its limits or of none.

use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Op};

use super::machine::Machine;
use super::random::{config, limits, many_limits, steps};

proptest! {
    #![proptest_config(config())]

    /// A denied call leaves every state as it was, but that of a limit that counts denied calls.
    #[test]
    fn a_denial_changes_nothing(limits in limits(), steps in steps(40)) {
        let mut machine = Machine::new(limits);
        for step in &steps {
            let before = machine.states.clone();
            if machine.step(step).verdict.allowed {
                continue;
            }
            for (index, limit) in machine.limits.iter().enumerate() {
                prop_assert!(limit.counts_denied() || machine.states[index] == before[index]);
            }
        }
    }

    /// Neither a peek nor a cost of 0 changes anything, also when the clock has stepped back; and a peek
    /// answers what the call itself would.
    #[test]
    fn looking_changes_nothing(
        limits in limits(), steps in steps(20), cost in 0..20_u64, back in prop_oneof![0..=40_u64, any::<u32>().prop_map(u64::from)],
    ) {
        let mut machine = Machine::new(limits);
        for step in &steps {
            let (op, _) = machine.advance(step);
            machine.step(step);
            machine.now.0 -= back;
            let before = machine.states.clone();
            let peek = machine.decide(Op::Peek, cost);
            if !matches!(op, Op::Reset) {
                machine.decide(op, 0);
            }
            prop_assert_eq!(&machine.states, &before);
            let call = machine.would(Op::Charge, cost, 0);
            prop_assert_eq!((peek.verdict.allowed, peek.all.retry), (call.verdict.allowed, call.all.retry));
            machine.now.0 += back;
        }
    }

    /// A cost of 0 passes unless the limit is in debt, which only forced debits, reservations and
    /// `count_denied` can bring about.
    #[test]
    fn cost_0_passes_without_debt(limits in limits(), steps in super::random::charges(30)) {
        let counts_denied = limits.iter().any(Algorithm::counts_denied);
        let mut machine = Machine::new(limits);
        for step in &steps {
            machine.step(step);
            prop_assert!(counts_denied || machine.would_pass(0, 0));
        }
    }

    /// All limits or none: a decision passes exactly when every limit alone would let it pass, and then
    /// leaves each as it would have been alone.
    #[test]
    fn all_or_none(limits in many_limits(), steps in steps(30)) {
        let mut machine = Machine::new(limits);
        for step in &steps {
            let (op, cost) = machine.advance(step);
            let mut alone: Vec<Machine> = (0..machine.limits.len()).map(|index| machine.alone(index)).collect();
            let before = machine.states.clone();
            let together = machine.decide(op, cost);
            let each: Vec<_> = alone.iter_mut().map(|one| one.decide(op, cost)).collect();
            prop_assert_eq!(together.verdict.allowed, each.iter().all(|one| one.verdict.allowed));
            if op == Op::AtMost && cost > 0 {
                // What the scarcest limit grants is charged to all.
                let least = each.iter().map(|one| one.verdict.granted).min().unwrap_or(0);
                prop_assert_eq!(together.verdict.granted, least);
                continue;
            }
            for (index, one) in alone.iter().enumerate() {
                prop_assert_eq!(together.limits[index].fits(), each[index].limits[0].fits());
                if together.verdict.allowed {
                    prop_assert_eq!(&machine.states[index], &one.states[0]);
                    prop_assert_eq!(together.limits[index], each[index].limits[0]);
                } else if !machine.limits[index].counts_denied() {
                    prop_assert_eq!(&machine.states[index], &before[index]);
                }
            }
        }
    }
}
