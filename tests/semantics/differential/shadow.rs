//! The same of decisions some of whose limits are in shadow mode.

use proptest::prelude::*;
use weir_config::Topology;

use super::{Story, World, call, pair};
use crate::properties::random;
use crate::support;

#[test]
fn limits_in_shadow_mode() {
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    random::tell(file!(), 1, &story(), |story| world.tell(&story));
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
