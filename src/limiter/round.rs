//! Questions, one after the other, on a store that answers at once: timed and counted together.

use std::time::Instant;

use super::{Limiter, LimiterError, Outcome, fall_back};
use crate::clock;
use crate::store::{Ended, Store, StoreError};
use crate::strategy::Strategy;
use crate::telemetry::{CountedMethod, CountedOutcome as Counted};

/// Decides in the order it is asked. What it has done is counted when it is dropped; until then only
/// errors and refusals are. Each decision counts as long as the round took: none is answered earlier.
pub struct Round<'a, S: Store> {
    pub(super) limiter: &'a Limiter<S>,
    started: Instant,
    decided: u64,
    store_answers: u64,
    /// The decisions since the last that ended otherwise or under another strategy.
    run: SameOutcomes,
    /// What the store last said to several questions; kept for its room.
    pub(super) ended: Ended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct SameOutcomes {
    strategy: usize,
    outcome: Counted,
    count: u64,
}

impl<S: Store> Limiter<S> {
    /// Begins a round: for stores that answer at once ([`Store::AT_ONCE`]), or for what a store knows.
    pub fn round(&self) -> Round<'_, S> {
        let run = SameOutcomes { strategy: 0, outcome: Counted::Allowed, count: 0 };
        let ended = Ended::default();
        Round { limiter: self, started: clock::monotonic(), decided: 0, store_answers: 0, run, ended }
    }
}

impl<S: Store> Round<'_, S> {
    /// The store has answered.
    pub(super) fn answered(&mut self) {
        self.store_answers += 1;
    }

    /// What is said when the store has failed.
    #[cold]
    pub(super) fn failed<L>(
        &mut self,
        strategy: &Strategy,
        error: StoreError,
    ) -> Result<Outcome<L>, LimiterError> {
        let took = clock::monotonic().saturating_duration_since(self.started);
        self.limiter.recorder.store_called(took, Some(&error));
        fall_back(strategy, error)
    }

    #[inline]
    pub(super) fn count(&mut self, strategy: usize, outcome: Counted) {
        self.decided += 1;
        if (self.run.strategy, self.run.outcome) != (strategy, outcome) {
            self.count_run();
            self.run = SameOutcomes { strategy, outcome, count: 0 };
        }
        self.run.count += 1;
    }

    fn count_run(&self) {
        let SameOutcomes { strategy, outcome, count } = self.run;
        self.limiter.recorder.ended(strategy, outcome, count);
    }
}

impl<S: Store> Drop for Round<'_, S> {
    fn drop(&mut self) {
        let took = clock::monotonic().saturating_duration_since(self.started);
        self.count_run();
        self.limiter.recorder.took(CountedMethod::ShouldAllow, took, self.decided, self.store_answers);
    }
}
