//! The use case of decisions: resolves the strategy, asks the store, applies the failure policy, records one event.

mod adjust;
mod advice;
mod answer;
mod bans;
mod begin_waiting;
mod bounds;
mod costed;
mod costed_shadow;
mod costed_slot;
mod costs;
mod count;
mod deadline;
mod decided;
mod decision_log;
mod inline;
mod late_round;
mod live_waits;
mod log;
mod logged_costs;
mod named;
mod near;
mod question;
mod record;
mod round;
mod same_outcomes;
mod settlement;
mod shadow;
mod short_circuit;
mod undo;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use adjust::Adjusted;
pub use advice::Advice;
pub use answer::Answer;
pub use bounds::{InvalidField, MAX_BATCH, MAX_ID, check_batch, interval, shown};
pub use count::CountedParts;
pub use deadline::AnswerReserve;
pub use decided::{LimiterError, LimitsDecision};
pub use decision_log::log_decision;
pub use question::{AskedFields, DEFAULT_COST, InlineLimit, NamedCost, Question, Shaping};
pub use round::Round;
pub use settlement::SettledCall;
pub use undo::Undone;
pub use waiting::{Begun, Waiting};
use weir_config::AccessRight;
use weir_core::strategy::{Resolved, Rules, Strategy, StrategyRule};
use weir_store::{Decision, Store, StoreAnswer, StoreError, Verdicts, decide_one};
use weir_time::clock;

use crate::guard::Guard;
use crate::telemetry::{Recorder, Rejection};

/// Answers questions from one store under one set of rules. Each worker has its own.
pub struct Limiter<S> {
    rules: Arc<Rules>,
    store: Arc<S>,
    recorder: Arc<Recorder>,
    /// Refuses banned callers; `None` if nobody can be banned.
    guard: Option<Arc<dyn Guard>>,
    reserve: AnswerReserve,
}

impl<S: Store> Limiter<S> {
    /// A limiter that counts what it does in `recorder`, which was made for the same rules.
    pub fn new(rules: Arc<Rules>, store: S, recorder: Arc<Recorder>) -> Self {
        let reserve = AnswerReserve::default();
        Self { rules, store: Arc::new(store), recorder, guard: None, reserve }
    }

    /// Sets who refuses banned callers.
    #[must_use]
    pub fn with_guard(self, guard: Option<Arc<dyn Guard>>) -> Self {
        Self { guard, ..self }
    }

    /// The limiter that keeps at least this time of callers' deadlines for answers without the store.
    #[must_use]
    pub fn with_reserve(self, reserve: AnswerReserve) -> Self {
        Self { reserve, ..self }
    }

    /// The limiter of the same store under other rules.
    pub fn under(&self, rules: Arc<Rules>, recorder: Arc<Recorder>) -> Self {
        let (store, guard) = (Arc::clone(&self.store), self.guard.clone());
        Self { rules, store, recorder, guard, reserve: self.reserve }
    }

    pub(crate) fn store(&self) -> Arc<S> {
        Arc::clone(&self.store)
    }

    /// Returns the time by which the store must have answered, so that its absence can still be answered before `deadline`.
    /// A store that answers at once needs no deadline.
    #[inline]
    pub fn store_deadline(&self, deadline: Option<Instant>, now: Instant) -> Option<Instant> {
        deadline.filter(|_| !S::AT_ONCE).map(|deadline| self.reserve.for_store(deadline, now))
    }

    /// Returns the timeout of the store for a decision whose caller sets no deadline.
    pub fn store_patience(&self) -> Option<Duration> {
        self.store.patience()
    }

    /// Checks the right, before anything else.
    #[inline]
    pub(crate) fn authorize(&self, right: AccessRight, question: &Question<'_>) -> Result<(), LimiterError> {
        if question.rights.is_all() { Ok(()) } else { authorize(&self.rules, right, question) }
    }

    /// Checks the right, and resolves the strategy. Counts the question as rejected if it is invalid.
    fn resolve<'a>(
        &'a self,
        right: AccessRight,
        question: &'a Question<'_>,
    ) -> Result<Resolved<'a>, LimiterError> {
        self.authorize(right, question)?;
        resolve(&self.rules, question).map_err(|error| self.refused(error))
    }

    /// Counts a question that was rejected.
    #[cold]
    pub(crate) fn refused(&self, error: LimiterError) -> LimiterError {
        match error {
            // Counted by its reason, and as no question.
            LimiterError::Refused(_) => {}
            LimiterError::Unknown(_) => self.recorder.rejected(Rejection::Unknown),
            _ => self.recorder.rejected(Rejection::Invalid),
        }
        error
    }

    /// Asks the store for one decision about `question` that is timed and counted for itself.
    async fn ask(&self, decision: &Decision<'_>, question: &Question<'_>) -> Result<Verdicts, StoreError> {
        let started = clock::monotonic();
        let answer = decide_one(&*self.store, decision);
        if self.rules.has_shadows() && !matches!(answer, StoreAnswer::Ready(Err(_))) {
            self.change_shadows(decision, None);
        }
        let result = answer.verdicts().await;
        let took = clock::monotonic().saturating_duration_since(started);
        let error = result.as_ref().map_or_else(Some, |verdicts| verdicts.local.as_ref());
        self.recorder.store_called(took, error.filter(|error| !error.is_callers()));
        if self.recorder.decision_log().is_some() {
            self.log_change(decision, question.is_for_default(), &result);
        }
        result
    }
}

/// Checks a right of a question. The strategy of its resource is looked up only if a rule of the caller needs it.
pub fn authorize(rules: &Rules, right: AccessRight, question: &Question<'_>) -> Result<(), LimiterError> {
    Ok(question.rights.check(right, question.named(), |resource| strategy_name_of(rules, resource))?)
}

pub(crate) fn strategy_name_of<'a>(rules: &'a Rules, resource: &str) -> Option<&'a str> {
    rules.resolve(resource, "").ok().map(|found| found.strategy.name())
}

/// Resolves a question under `rules` into a strategy of rate limits. Fails if the question is invalid.
pub fn resolve<'a>(rules: &'a Rules, question: &'a Question<'_>) -> Result<Resolved<'a>, LimiterError> {
    if let Some(limit) = question.inline() {
        bounds::check(question)?;
        let resolved = inline::resolve(rules, question, limit)?;
        bounds::check_needed(question, resolved.strategy)?;
        bounds::check_shaping(question, resolved.strategy)?;
        return Ok(resolved);
    }
    let resolved = resolve_any(rules, question)?;
    of_rates(resolved)
}

/// A strategy of permits decides no questions.
#[inline]
fn of_rates(resolved: Resolved<'_>) -> Result<Resolved<'_>, LimiterError> {
    match resolved.strategy.rule() {
        StrategyRule::Rates(_) => Ok(resolved),
        StrategyRule::Permits(_) => Err(has_permits(resolved.strategy)),
    }
}

#[cold]
fn has_permits(strategy: &Strategy) -> LimiterError {
    LimiterError::Unsupported(format!(
        "strategy `{}` has permits and no rate limits; ask ConcurrencyService.Acquire",
        strategy.name()
    ))
}

/// Resolves a question under `rules` into a strategy of either kind. Fields are checked before access lists, so that
/// a list does not hide a caller's mistake.
pub fn resolve_any<'a>(rules: &'a Rules, question: &Question<'_>) -> Result<Resolved<'a>, LimiterError> {
    bounds::check(question)?;
    let resolved = rules.resolve_for(question.resource, question.consumer, question.strategy);
    let resolved = resolved.map_err(bounds::shortened)?;
    bounds::check_needed(question, resolved.strategy)?;
    if !question.is_plain() {
        bounds::check_shaping(question, resolved.strategy)?;
    }
    Ok(resolved)
}
