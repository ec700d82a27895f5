//! Any clock, any cost, any configuration: every answer stays within its bounds. A clock that jumped ahead and came
//! back does not deny callers for long.

use proptest::prelude::*;
use weir_core::algorithm::Op;
use weir_units::{Micros, Retry};

use super::machine::{Machine, START};
use super::random::{config, limits, many_limits, op, steps, supported};

/// No answer is larger: the last exact integer of a double.
const EXACT: u64 = 1 << 53;

proptest! {
    #![proptest_config(config())]

    /// The states that one configuration wrote are read by another, at any time, with any cost: nothing
    /// overflows, and nothing that an answer says is beyond its bound.
    #[test]
    fn nothing_overflows(
        before in many_limits(),
        after in many_limits(),
        calls in prop::collection::vec((op(), any::<u64>(), time(), any::<bool>()), 1..40),
    ) {
        let count = before.len().min(after.len());
        let configurations = [&before[..count], &after[..count]];
        let mut machine = Machine::new(configurations[0].to_vec());
        for (op, cost, now, changed) in calls {
            machine.limits = configurations[usize::from(changed)].to_vec();
            machine.now = Micros(now);
            let answer = machine.decide(supported(op, &machine.limits), cost);
            for (limit, one) in machine.limits.iter().zip(&answer.limits) {
                prop_assert!(one.remaining <= limit.limit());
                prop_assert!(one.reset_after.0 < EXACT);
                prop_assert!(!matches!(one.retry, Retry::After(wait) if wait.0 == 0 || wait.0 >= EXACT));
            }
            prop_assert!(answer.verdict.wait.0 < EXACT && answer.verdict.granted <= cost);
        }
    }

    /// The clock was far ahead and came back. One call is made at the new time. All limits are full again
    /// within twice the `reset_after` of its answer.
    #[test]
    fn a_clock_that_came_back_does_not_deny_for_long(
        limits in limits(), steps in steps(20), now in prop_oneof![START..START + 1000, time()],
    ) {
        let now = now.min(EXACT / 2);
        let least = limits.iter().map(weir_core::algorithm::Algorithm::limit).min().unwrap_or(0);
        let mut machine = Machine::new(limits);
        for step in &steps {
            machine.step(step);
        }
        machine.now = Micros(now);
        let denied = machine.decide(Op::Charge, u64::MAX);
        prop_assert!(!denied.verdict.allowed);
        prop_assert!(machine.would_pass(least, 2 * denied.all.reset_after.0));
    }
}

/// Any time there is: near the start of the traces, anywhere, or beyond what a double counts.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => START..START + 1_000,
        3 => START - 1_000_000_000_000..START + 1_000_000_000_000,
        2 => 0..EXACT,
        1 => any::<u64>(),
        1 => Just(0),
        1 => Just(u64::MAX),
    ]
}
