//! A round of questions that are out of time: where only the failure policy can answer, the store is not asked.

use weir_core::algorithm::Op;
use weir_store::{Answers, Decision, Store, StoreError};

use super::Round;

impl<S: Store> Round<'_, S> {
    /// Says that its questions are out of time.
    pub fn end(&mut self) {
        self.is_late = true;
    }

    #[inline(always)]
    pub(super) fn ask_store(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        if self.is_late && self.is_left_to_policy(decisions) {
            decisions.iter().for_each(|decision| answers.fail(decision.costs.len(), &StoreError::Timeout));
        } else {
            self.limiter().store.decide(decisions, answers);
        }
    }

    /// True if no denial is cached, and no node decides by itself. The store would say the same of each, at the cost of
    /// the way to it: a third of a late answer.
    #[cold]
    fn is_left_to_policy(&self, decisions: &[Decision<'_>]) -> bool {
        let is_plain = |decision: &Decision<'_>| {
            matches!(decision.op, Op::Charge | Op::Peek)
                && decision.part.is_none()
                && decision.strategy.local().is_none()
                && decision.strategy.approximate().is_none()
        };
        !self.limiter().store.knows_some() && decisions.iter().all(is_plain)
    }
}
