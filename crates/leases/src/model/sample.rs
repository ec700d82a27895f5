//! The sample that a release gives to a controller, and the range of the limit.

use weir_core::strategy::AdaptiveRule;

/// The lowest and the highest limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LimitRange {
    min: f64,
    max: f64,
}

impl LimitRange {
    /// The bounds of a rule.
    pub(super) const fn new(rule: &AdaptiveRule) -> Self {
        Self { min: rule.min as f64, max: rule.max as f64 }
    }

    /// The nearest limit within the range.
    pub(super) fn clamp(self, limit: f64) -> f64 {
        limit.min(self.max).max(self.min)
    }
}

/// Sample of one release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// Duration of the work in microseconds; at least 1.
    pub(super) rtt: f64,
    /// Permits in flight when it began, its own weight included.
    pub(super) in_flight: f64,
    /// True if it failed for lack of capacity.
    pub(super) dropped: bool,
    /// A number from a half to one that differs from release to release.
    pub(super) jitter: f64,
}
