//! Bans in decisions: whom one denies, and which denials are counted for one.

use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_store::Decision;

use super::decided::{LimiterError, LimitsDecision};
use super::{Limiter, Question};
use crate::guard::BanHit;
use crate::settle::Outcome;

impl<S> Limiter<S> {
    /// The ban of the question's consumer under `strategy`, which has bans.
    #[cold]
    pub(super) fn banned(&self, strategy: &Strategy, question: &Question<'_>) -> Option<BanHit> {
        self.guard.as_ref()?.find(strategy, &question.subject(None))
    }

    #[inline]
    pub(super) fn counts_denial(&self, decision: &Decision<'_>) -> bool {
        !decision.strategy.bans().is_empty() && self.guard.is_some() && is_call(decision.op, decision.costs)
    }

    /// Counts a denial. What the node has decided by itself is not counted: its limits are smaller ones.
    #[cold]
    pub(super) fn count_denial(
        &self,
        strategy: &Strategy,
        subject: &Subject<'_>,
        outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
    ) {
        if let (Some(guard), Ok(Outcome::Decided(LimitsDecision { verdict, limits, .. }))) =
            (&self.guard, outcome)
            && !verdict.allowed
        {
            guard.denied(strategy, subject, limits);
        }
    }
}

/// True if it asks for units. A peek and a cost of 0 ask how things are.
fn is_call(op: Op, costs: &[u64]) -> bool {
    matches!(op, Op::Charge | Op::AtMost | Op::Reserve { .. }) && costs.first().is_some_and(|cost| *cost > 0)
}
