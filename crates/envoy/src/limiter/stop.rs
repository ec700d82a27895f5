//! Checks all limits of a request before any is charged, so that one that is over keeps the others from it, as
//! STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT of the reference does. Two requests at once may both find room and be charged,
//! there and here: the check is a call of its own.

use std::time::Instant;

use weir_core::algorithm::Op;
use weir_node::settle::Outcome;

use super::{DescriptorQuestion, EnvoyDecisions, EnvoyLimiter};

impl EnvoyDecisions {
    /// Charges no hits of descriptors that would pass if another one of the request would not. Bills and refunds stay.
    /// If the store fails, the charge itself finds out.
    pub(super) async fn stop_at_first_over(
        &self,
        envoy: &EnvoyLimiter,
        questions: &mut [DescriptorQuestion<'_>],
        asker: (Option<Instant>, u32),
        started: Instant,
    ) {
        let asked = questions.iter().filter(|question| question.takes());
        let asked: Vec<_> =
            asked.map(|question| DescriptorQuestion { op: Op::Peek, ..question.clone() }).collect();
        if asked.len() < 2 {
            return;
        }
        let Ok(seen) = self.decide_all(envoy, &asked, asker, started).await else { return };
        let passes: Vec<bool> =
            seen.iter().map(|outcome| outcome.as_ref().is_none_or(Outcome::is_allowed)).collect();
        if passes.iter().all(|passes| *passes) {
            return;
        }
        for (question, passes) in questions.iter_mut().filter(|question| question.takes()).zip(passes) {
            if passes {
                question.charged = 0;
            }
        }
    }
}

impl DescriptorQuestion<'_> {
    /// True if it charges its limit with what fits.
    fn takes(&self) -> bool {
        self.op == Op::Charge && self.hits > 0 && self.found.limit().is_some()
    }
}
