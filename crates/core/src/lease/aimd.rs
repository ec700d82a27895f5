//! AIMD: one more permit while they are used, a tenth less when work fails or takes too long.
//!
//! Twin: lua/lease/aimd.lua.

use super::sample::{LimitRange, Sample};
use weir_units::Micros;

/// The numbers of an AIMD limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AimdRule {
    /// Factor of the limit after work that was dropped or timed out.
    pub backoff: f64,
    /// Work that takes longer counts as dropped.
    pub timeout: Micros,
}

impl AimdRule {
    /// The limit after a sample.
    pub(super) fn next(&self, limit: f64, range: LimitRange, sample: &Sample) -> f64 {
        let next = if sample.dropped || sample.rtt > self.timeout.0 as f64 {
            (limit * self.backoff).floor()
        } else if sample.in_flight * 2.0 >= limit {
            limit + 1.0
        } else {
            limit
        };
        range.clamp(next)
    }
}
