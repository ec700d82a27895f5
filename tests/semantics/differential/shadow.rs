//! The same of decisions some of whose limits are in shadow mode.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use weir_config::Topology;

use super::{Story, World, call, pair};
use crate::properties::random;
use crate::support;

#[test]
fn limits_in_shadow_mode() {
    let mut config = random::config();
    config.source_file = Some(file!());
    let world = std::cell::RefCell::new(World::new(vec![support::shared_redis().url()], Topology::Single));
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&story(), |story| world.borrow_mut().tell(&story).map(drop));
    outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
}

/// At least one of the limits is enforced: number `enforced`.
fn story() -> impl Strategy<Value = Story> {
    let limits =
        (prop::collection::vec((pair(), any::<bool>()), 2..=4), 0..4_usize).prop_map(|(limits, enforced)| {
            let enforced = enforced % limits.len();
            let limits = limits.into_iter().enumerate().map(|(index, ((one, other), shadow))| {
                if shadow && index != enforced { (one.in_shadow(), other.in_shadow()) } else { (one, other) }
            });
            limits.collect()
        });
    (limits, prop::collection::vec(call(), 1..40)).prop_map(|(limits, calls)| Story { limits, calls })
}
