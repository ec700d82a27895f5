//! Facts of a call that its shadows learn: its outcome, and what its limits in shadow mode have said.

use smallvec::SmallVec;
use tokio::sync::oneshot;
use weir_core::algorithm::Cause;
use weir_store::Store;

use super::Limiter;
use super::decided::{LimiterError, LimitsDecision};
use crate::settle::Outcome;
use crate::telemetry::CountedOutcome;

/// Senders that tell the shadows of a pending call its outcome.
pub(super) struct LiveWaits {
    pub(super) index: usize,
    pub(super) shadows: SmallVec<[oneshot::Sender<bool>; 1]>,
}

impl LiveWaits {
    /// Sends the outcome; sends nothing if the store failed.
    pub(super) fn ended<S: Store>(
        self,
        limiter: &Limiter<S>,
        outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
    ) {
        let Ok(outcome) = outcome else { return };
        limiter.count_shadow_limits(self.index, outcome);
        let allowed = outcome.is_allowed();
        for shadow in self.shadows {
            // A shadow that was cancelled compares nothing.
            let _ = shadow.send(allowed);
        }
    }
}

impl<S: Store> Limiter<S> {
    /// Counts what the limits in shadow mode of strategy number `index` have said of a call.
    pub(super) fn count_shadow_limits(&self, index: usize, outcome: &Outcome<LimitsDecision<'_>>) {
        let Outcome::Decided(decision @ LimitsDecision { verdict, limits, .. }) = outcome else { return };
        let passed = match decision.counted_by_charge() {
            uncharged if uncharged.is_uncharged() => uncharged,
            _ => CountedOutcome::Allowed,
        };
        for shadow in self.rules.shadow_limits(index) {
            let outcome = match limits.get(shadow.place).map(|limit| limit.cause) {
                Some(None) => passed,
                Some(Some(Cause::Never)) => CountedOutcome::Never,
                Some(Some(Cause::Count | Cause::MinGap)) => CountedOutcome::Denied,
                None => CountedOutcome::Error,
            };
            // Where other limits deny, this one denies nothing that they do not.
            let differs = verdict.allowed && outcome.is_allowed() == Some(false);
            if self.recorder.shadow_decided(shadow.pair, outcome, differs) {
                let strategy = self.rules.strategies().get(index).map_or("", |strategy| strategy.name());
                let (live, outcome) = (verdict.allowed, outcome.name());
                tracing::info!(strategy, shadow = &*shadow.label, live, outcome, "a shadow differs");
            }
        }
    }
}
