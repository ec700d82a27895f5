//! Questions, one after the other, on a store that answers at once: timed and counted together.

use std::time::Instant;

use super::{Answer, Ask, Limiter, LimiterError, Outcome, at_once, count_as, fall_back, log, not_at_once};
use crate::clock;
use crate::store::Store;
use crate::telemetry::Outcome as Counted;

/// Decides in the order it is asked. What it has done is counted when it is dropped; until then only
/// errors and refusals are. Each decision counts as long as the round took: none is answered earlier.
pub struct Round<'a, S: Store> {
    limiter: &'a Limiter<S>,
    started: Instant,
    decided: u64,
    store_answers: u64,
    /// The decisions since the last that ended otherwise or under another strategy.
    run: Run,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    strategy: usize,
    outcome: Counted,
    count: u64,
}

impl<S: Store> Limiter<S> {
    /// Begins a round. Only for stores that answer at once ([`Store::AT_ONCE`]).
    pub fn round(&self) -> Round<'_, S> {
        let run = Run { strategy: 0, outcome: Counted::Allowed, count: 0 };
        Round { limiter: self, started: clock::monotonic(), decided: 0, store_answers: 0, run }
    }
}

impl<'a, S: Store> Round<'a, S> {
    /// Answers one question, as [`Limiter::decide`] does.
    #[inline]
    pub fn decide(&mut self, ask: &Ask<'_>) -> Result<Answer<'a>, LimiterError> {
        let limiter = self.limiter;
        let resolved = limiter.resolve(ask)?;
        let answer = match resolved.listing {
            Some(listing) => Ok(Outcome::Listed(listing.listed)),
            None => {
                let asked = at_once(limiter.ask_store(ask, &resolved, self.started));
                match asked.unwrap_or_else(|| Err(not_at_once())) {
                    Ok(outcome) => {
                        self.store_answers += 1;
                        Ok(outcome)
                    }
                    Err(error) => {
                        let took = clock::monotonic().saturating_duration_since(self.started);
                        limiter.recorder.store_called(took, Some(&error));
                        fall_back(resolved.strategy, error)
                    }
                }
            }
        };
        let counted = count_as(&answer);
        self.count(resolved.index, counted);
        log(ask, &resolved, None, counted, &answer);
        answer.map(|outcome| Answer { strategy: resolved.strategy, outcome })
    }

    fn count(&mut self, strategy: usize, outcome: Counted) {
        self.decided += 1;
        if (self.run.strategy, self.run.outcome) != (strategy, outcome) {
            self.count_run();
            self.run = Run { strategy, outcome, count: 0 };
        }
        self.run.count += 1;
    }

    fn count_run(&self) {
        let Run { strategy, outcome, count } = self.run;
        self.limiter.recorder.ended(strategy, outcome, count);
    }
}

impl<S: Store> Drop for Round<'_, S> {
    fn drop(&mut self) {
        let took = clock::monotonic().saturating_duration_since(self.started);
        self.count_run();
        self.limiter.recorder.took(took, self.decided, self.store_answers);
    }
}
