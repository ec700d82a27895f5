//! Limits that are nearly used, of decisions without costs by limit.

use weir_core::algorithm::LimitVerdict;
use weir_core::strategy::{LimitMarks, Strategy};

use super::LimitsDecision;
use crate::settle::Outcome;
use crate::telemetry::Recorder;

/// Counts the limits that this decision took over their `near_limit`.
#[cold]
pub(super) fn count(
    recorder: &Recorder,
    (strategy, marks): (&Strategy, &LimitMarks),
    consumer: &str,
    outcome: &Outcome<LimitsDecision<'_>>,
) {
    let Outcome::Decided(decision @ LimitsDecision { costs: None, .. }) = outcome else { return };
    for (index, (limit, said)) in strategy.limits().iter().zip(decision.limits).enumerate() {
        if decision.near((strategy, marks), index, (said, false)).1 {
            recorder.costs().crossed((strategy.name(), &limit.name), consumer, said, &limit.algorithm);
        }
    }
}

impl LimitsDecision<'_> {
    /// True if the limit with this index is nearly used; and if this call took its use over its `near_limit`.
    pub(crate) fn near(
        &self,
        (strategy, marks): (&Strategy, &LimitMarks),
        index: usize,
        (said, peek): (&LimitVerdict, bool),
    ) -> (bool, bool) {
        let percent = marks.near_percent(index);
        let (Some(percent), Some(algorithm)) = (percent, strategy.algorithms().get(index)) else {
            return (false, false);
        };
        let is_charged = !peek && self.verdict.allowed && self.verdict.applied && said.fits();
        algorithm.is_near(percent, said, if is_charged { self.verdict.granted } else { 0 })
    }
}
