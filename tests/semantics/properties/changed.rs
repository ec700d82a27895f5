//! States of another length count whole until they would have been fresh, and then not at all.

use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Op};

use super::machine::{Machine, micros};
use super::random::{config, sliding, slots, sparse};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn another_length_counts_whole_until_fresh(
        (before, after) in prop_oneof![(sliding(), sliding()), (slots(), slots()), (sparse(), sparse())],
        (cost, share, more) in (1..6_u64, any::<u16>(), 0..3_u64),
    ) {
        prop_assume!(before.engine() != after.engine() && before.limit() >= cost);
        let mut machine = Machine::new(vec![before]);
        let fresh_after = machine.decide(Op::Charge, cost).all.reset_after.0;
        machine.limits = vec![after];
        let (whole, gone) = (u128::from(fresh_after - 1) * u128::from(share) / 65_536, fresh_after);
        let left = after.limit().saturating_sub(cost);
        let then = machine.would(Op::Peek, 0, whole as u64);
        prop_assert_eq!((then.all.remaining, then.all.reset_after.0), (left, gone - whole as u64));
        prop_assert_eq!(machine.would(Op::Peek, 1, gone), machine.fresh().would(Op::Peek, 1, gone));
        check_charged_meanwhile(machine, &after, more.min(left), fresh_after)?;
    }
}

/// Charges of the meantime are joined to the state, and go with it.
fn check_charged_meanwhile(
    mut machine: Machine,
    after: &Algorithm,
    cost: u64,
    gone: u64,
) -> Result<(), TestCaseError> {
    let before = machine.would(Op::Peek, 0, 0).all.remaining;
    machine.decide(Op::Charge, cost);
    let charged = machine.would(Op::Peek, after.limit(), 0).all;
    prop_assert_eq!(charged.remaining, before - cost);
    prop_assert!(after.limit() == charged.remaining || micros(charged.retry) == gone || gone == 0);
    prop_assert_eq!(machine.would(Op::Peek, 1, gone), machine.fresh().would(Op::Peek, 1, gone));
    Ok(())
}
