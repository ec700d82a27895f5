//! Every number of an answer is exact: what it says passes does, what it says does not does not, and
//! no shorter wait would do.

use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Cause, Engine, Op, State};
use weir_units::Retry;

use super::machine::Machine;
use super::random::{config, limits, steps, strict_log, supported};

proptest! {
    #![proptest_config(config())]

    /// One microsecond earlier the same call is denied, at the time it passes; and "never" is said
    /// exactly where the cost is above a limit. A denied call of a `count_denied` limit is itself
    /// traffic that another limit of its decision may later deny, so such composites promise nothing.
    #[test]
    fn retry_after_is_exact(limits in limits(), steps in steps(30)) {
        let records_denied = limits.len() > 1 && limits.iter().any(Algorithm::counts_denied);
        let least = limits.iter().map(Algorithm::limit).min().unwrap_or(0);
        let mut machine = Machine::new(limits);
        for step in &steps {
            let (op, cost) = machine.advance(step);
            let answer = machine.decide(op, cost);
            let wanted = if op == Op::AtMost { cost.min(1) } else { cost };
            match answer.all.retry {
                Retry::Now => prop_assert!(answer.verdict.allowed),
                Retry::Unknown => prop_assert!(false, "a rate limit knows how long to wait"),
                Retry::Never => prop_assert!(!answer.verdict.allowed && wanted > least),
                Retry::After(wait) => {
                    prop_assert!(!answer.verdict.allowed && wait.0 > 0 && wanted <= least);
                    if !records_denied {
                        // A peek of a log that counts attempts tells the wait as if it were one.
                        let mut machine = machine.clone();
                        if op == Op::Peek && machine.limits.iter().any(counts_attempts) {
                            machine.decide(Op::Charge, cost);
                        }
                        let passes = |after| machine.would(op, cost, after).verdict.allowed;
                        prop_assert!(passes(wait.0), "{step:?} is denied after {wait}");
                        prop_assert!(!passes(wait.0 - 1), "{step:?} passes before {wait}");
                    }
                }
            }
        }
    }

    /// A cost of `remaining` would pass now, and one unit more would not. This is true for the decision and for each
    /// limit. `remaining` ignores `min_gap`. A peek of a log that counts attempts counts itself.
    #[test]
    fn remaining_passes_and_one_more_does_not(limits in limits(), steps in steps(30)) {
        let mut machine = Machine::new(limits);
        for step in &steps {
            let answer = machine.step(step);
            let gap = |machine: &Machine| {
                let limits = machine.would(Op::Peek, 1, 0).limits;
                limits.iter().any(|limit| limit.cause == Some(Cause::MinGap))
            };
            if supported(step.op, &machine.limits) == Op::Peek && machine.limits.iter().any(counts_attempts) {
                continue;
            }
            prop_assert!(
                machine.would_pass(answer.all.remaining, 0) || answer.all.remaining == 0 || gap(&machine)
            );
            prop_assert!(!machine.would_pass(answer.all.remaining + 1, 0));
            for (index, limit) in answer.limits.iter().enumerate() {
                let alone = machine.alone(index);
                prop_assert!(alone.would_pass(limit.remaining, 0) || limit.remaining == 0 || gap(&alone));
                prop_assert!(!alone.would_pass(limit.remaining + 1, 0));
            }
        }
    }

    /// At `reset_after` a limit answers as if never used; one microsecond earlier its whole limit does
    /// not pass yet.
    #[test]
    fn reset_after_is_minimal(limits in limits(), steps in steps(30)) {
        let mut machine = Machine::new(limits);
        for step in &steps {
            let answer = machine.step(step);
            for (index, limit) in answer.limits.iter().enumerate() {
                let (used, wait) = (machine.alone(index), limit.reset_after.0);
                let whole = used.limits[0].limit();
                for cost in [0, 1, whole, whole + 1] {
                    let (used, fresh) = (used.would(Op::Peek, cost, wait), used.fresh().would(Op::Peek, cost, wait));
                    prop_assert_eq!(used, fresh);
                }
                prop_assert!(wait == 0 || !used.would_pass(whole, wait - 1), "{} is fresh before {wait} us", index);
            }
        }
    }

    /// An expired state and an absent one decide alike, now and at every later step.
    #[test]
    fn expired_and_absent_decide_alike(
        limits in limits(), steps in steps(20), late in 0..50_u64, later in steps(20),
    ) {
        let mut used = Machine::new(limits);
        let last = steps.iter().map(|step| used.step(step)).last();
        used.now.0 += last.map_or(0, |answer| answer.all.reset_after.0) + late;
        let mut absent = used.fresh();
        for step in &later {
            prop_assert_eq!(used.step(step), absent.step(step));
        }
    }

    /// After the wait of a reservation all earlier ones have started. A microsecond earlier, one of them has not.
    #[test]
    fn a_reservation_waits_exactly_until_its_turn(limit in super::random::bucket(), steps in steps(30)) {
        let mut machine = Machine::new(vec![limit]);
        for step in &steps {
            let (op, cost) = machine.advance(step);
            let plain = machine.would(Op::Charge, cost, 0);
            let answer = machine.decide(op, cost);
            let Op::Reserve { max_wait } = op else { continue };
            if !answer.verdict.allowed {
                continue;
            }
            let wait = answer.verdict.wait;
            prop_assert!(wait <= max_wait && wait.0 == super::machine::micros(plain.all.retry));
            prop_assert!(machine.would_pass(0, wait.0) && (wait.0 == 0 || !machine.would_pass(0, wait.0 - 1)));
        }
    }

    /// `at_most` grants what remains, up to what was asked; a refund of a charge undoes it.
    #[test]
    fn at_most_and_refund_add_up(limit in super::random::bucket(), steps in steps(20), asked in 1..20_u64) {
        let mut machine = Machine::new(vec![limit]);
        for step in &steps {
            machine.step(step);
            let before = machine.would(Op::Peek, 0, 0);
            let mut other = machine.clone();
            let granted = other.decide(Op::AtMost, asked).verdict.granted;
            prop_assert_eq!(granted, asked.min(before.all.remaining));
            other.decide(Op::Refund, granted);
            prop_assert_eq!(other.would(Op::Peek, 0, 0), before);
        }
    }

    /// However long an attack goes on, a log that counts denied attempts keeps no more of it than decides:
    /// one unit above the limit, and as many entries at most.
    #[test]
    fn an_attack_takes_no_more_memory_than_the_limit(limit in strict_log(), attempts in 1..200_u64, cost in 1..5_u64) {
        prop_assume!(limit.counts_denied());
        const BYTES_AN_ENTRY: usize = 16;
        let mut machine = Machine::new(vec![limit]);
        for _ in 0..attempts {
            machine.now.0 += 1;
            machine.decide(Op::Charge, cost);
            let bytes = machine.states[0].as_ref().map_or(0, State::heap_bytes);
            let entries = usize::try_from(limit.limit() + 1).unwrap().max(16);
            prop_assert!(bytes <= 64 + 4 * entries * BYTES_AN_ENTRY, "{} bytes", bytes);
        }
    }
}

/// Returns true if the answers of the limit count the attempt itself.
fn counts_attempts(limit: &Algorithm) -> bool {
    limit.counts_denied() && matches!(limit.engine(), Engine::Log(_))
}
