//! A limit in shadow mode changes nothing for the others, and counts as it would alone for the calls that they admit.

use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Op, Summary};
use weir_units::Retry;

use super::machine::Machine;
use super::random::{config, limit, op, step};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_denies_nothing_and_counts_what_is_admitted(
        enforced in prop::collection::vec(limit(), 1..=2),
        shadow in limit().prop_filter("it counts attempts of denied calls", |limit| !limit.counts_denied()),
        place in 0..3_usize,
        steps in prop::collection::vec(step(op()), 1..40),
    ) {
        let place = place.min(enforced.len());
        let mut all = enforced.clone();
        all.insert(place, shadow.in_shadow());
        let (mut both, mut without) = (Machine::new(all), Machine::new(enforced));
        let mut alone = Machine::new(vec![shadow]);
        // The phase of a key is that of its place.
        without.phases = both.phases.iter().enumerate().filter(|(index, _)| *index != place).map(|one| *one.1).collect();
        alone.phases = vec![both.phases[place]];
        for step in &steps {
            let (op, cost) = both.advance(step);
            (without.now, alone.now) = (both.now, both.now);
            let (said, expected) = (both.decide(op, cost), without.decide(op, cost));
            prop_assert_eq!(said.verdict, expected.verdict);
            let mut limits = said.limits.clone();
            let shadowed = limits.remove(place);
            prop_assert_eq!(&limits, &expected.limits);
            prop_assert_eq!(said.all, Summary::new(&without.limits, &limits));
            let (own_op, own_cost) = match op {
                Op::Force | Op::Refund | Op::Reset | Op::Peek => (op, cost),
                _ if expected.verdict.allowed => (Op::Charge, if op == Op::AtMost { said.verdict.granted } else { cost }),
                _ => (Op::Peek, cost),
            };
            let own = alone.decide(own_op, own_cost).limits[0];
            prop_assert_eq!(
                (shadowed.cause, shadowed.remaining, shadowed.reset_after, shadowed.level_before),
                (own.cause, own.remaining, own.reset_after, own.level_before)
            );
            prop_assert_eq!(shadowed.retry, Retry::Now);
        }
        prop_assert!(alone.limits.iter().all(|limit: &Algorithm| !limit.is_shadow()));
    }
}
