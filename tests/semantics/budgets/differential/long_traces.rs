//! Other traces, and more of them.

use super::{TRACES, Topology, support, tell_stories};

#[test]
fn on_redis() {
    tell_stories(2025, 5 * TRACES, vec![support::shared_redis().url()], Topology::Single);
}
