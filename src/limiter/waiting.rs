//! A question whose answer the store gives later.

use std::sync::Arc;
use std::time::Instant;

use super::answer::{Answer, LimiterError, Outcome};
use super::log::OwnedLogFields;
use super::{Limiter, settle};
use crate::clock;
use crate::store::{LaterVerdicts, Store, Verdicts, no_verdict};
use crate::strategy::Strategy;

/// It borrows from nobody, so that it is part of its own call alone: dropped before it was polled, it has asked
/// nothing, and dropped later, it loses only its own answer.
pub struct Waiting {
    /// Of the strategy.
    pub(super) index: usize,
    pub(super) strategy: Arc<Strategy>,
    pub(super) asked: Instant,
    pub(super) later: LaterVerdicts,
    /// What the store has answered.
    pub(super) verdicts: Verdicts,
    /// Where decisions are logged.
    pub(super) log: Option<OwnedLogFields>,
}

impl<S: Store> Limiter<S> {
    /// Waits for the store's answer; once.
    pub async fn wait<'w>(&self, waiting: &'w mut Waiting) -> Result<Answer<'w, 'w>, LimiterError> {
        let result = (&mut waiting.later).await;
        let took = clock::monotonic().saturating_duration_since(waiting.asked);
        self.recorder.store_called(took, result.as_ref().err());
        let decided = result.map(|verdicts| waiting.verdicts = verdicts);
        let Waiting { index, strategy, verdicts, log, .. } = &*waiting;
        let outcome = decided.and_then(|()| {
            let verdict = *verdicts.decisions.first().ok_or_else(no_verdict)?;
            Ok(Outcome::Decided { verdict, limits: &verdicts.limits })
        });
        let outcome = outcome.or_else(|error| settle::fall_back(strategy, error));
        let counted = settle::count_as(&outcome);
        self.recorder.decided(*index, counted, took);
        if let Some(fields) = log {
            settle::log(&fields.of(strategy), Some(took), counted, outcome.as_ref().err());
        }
        outcome.map(|outcome| Answer { strategy, outcome })
    }
}
