//! AIMD: one more permit while they are used, a tenth less when work fails or takes too long.
//!
//! Twin: lua/leases/aimd.lua.

use super::sample::{LimitRange, Sample};
use weir_core::strategy::AimdRule;

/// Returns the limit after a sample.
pub(super) fn next(rule: &AimdRule, limit: f64, range: LimitRange, sample: &Sample) -> f64 {
    let next = if sample.dropped || sample.rtt > rule.timeout.0 as f64 {
        (limit * rule.backoff).floor()
    } else if sample.in_flight * 2.0 >= limit {
        limit + 1.0
    } else {
        limit
    };
    range.clamp(next)
}
