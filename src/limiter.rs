//! The use case: which strategy, what its limits say, what answers when the store cannot, one event.

mod answer;
mod bounds;
mod deadline;
pub mod envoy;
mod log;
mod round;
mod several;
mod undo;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use answer::{Answer, Ask, LimiterError, Limits, Outcome};
pub use bounds::{InvalidField, MAX_BATCH, MAX_REFUND_ID, check_batch};
pub use round::Round;
pub use several::Lent;
pub use undo::Undone;

use self::log::{Logged, log};
use crate::algorithm::{LimitVerdict, Op};
use crate::clock;
use crate::key::Subject;
use crate::store::{Decision, Part, Store, StoreError, Verdicts, no_verdict};
use crate::strategy::{FailurePolicy, Listed, Resolved, Rules, Strategy};
use crate::telemetry::{CountedOutcome as Counted, Recorder, Rejection};
use crate::units::Retry;

/// Answers questions from one store under one set of rules. Each worker has its own.
pub struct Limiter<S> {
    rules: Arc<Rules>,
    store: S,
    recorder: Arc<Recorder>,
}

impl<S: Store> Limiter<S> {
    /// A limiter that counts what it does in `recorder`, which was made for the same rules.
    #[must_use]
    pub fn new(rules: Arc<Rules>, store: S, recorder: Arc<Recorder>) -> Self {
        Self { rules, store, recorder }
    }

    /// Answers one question. A denial is an answer, not an error.
    pub async fn decide(&self, ask: &Ask<'_>) -> Result<Answer<'_>, LimiterError> {
        let resolved = self.resolve(ask)?;
        if let Some(listing) = resolved.listing {
            let answer = Ok(Outcome::Listed(listing.listed));
            self.record(ask, &resolved, Duration::ZERO, &answer);
            return answer.map(|outcome| Answer { strategy: resolved.strategy, outcome });
        }
        let started = clock::monotonic();
        let result = self.ask_store(ask, &resolved, started).await;
        let took = clock::monotonic().saturating_duration_since(started);
        self.recorder.store_called(took, result.as_ref().err());
        let answer = result.or_else(|error| fall_back(resolved.strategy, error));
        self.record(ask, &resolved, took, &answer);
        answer.map(|outcome| Answer { strategy: resolved.strategy, outcome })
    }

    /// Whether [`Round::decide_known`] is worth being asked.
    pub fn knows_some(&self) -> bool {
        self.store.knows_some()
    }

    /// The strategy that applies, if the question can be asked at all.
    fn resolve(&self, ask: &Ask<'_>) -> Result<Resolved<'_>, LimiterError> {
        resolve(&self.rules, ask).map_err(|error| self.refused(error))
    }

    /// Counts a question that cannot be asked.
    #[cold]
    fn refused(&self, error: LimiterError) -> LimiterError {
        self.recorder.rejected(match error {
            LimiterError::Unknown(_) => Rejection::Unknown,
            _ => Rejection::Invalid,
        });
        error
    }

    async fn ask_store(
        &self,
        ask: &Ask<'_>,
        resolved: &Resolved<'_>,
        started: Instant,
    ) -> Result<Outcome, StoreError> {
        let mut verdicts = Verdicts::default();
        let deadline = ask.deadline.map(|deadline| deadline::for_store(deadline, started));
        let decision = decision(ask, resolved, deadline);
        self.store.decide(&decision, op(ask), &[ask.cost], &mut verdicts).await?;
        match verdicts.decisions.pop() {
            Some(verdict) => Ok(Outcome::Decided { verdict, limits: verdicts.limits }),
            None => Err(no_verdict()),
        }
    }

    /// The one event of a decision.
    fn record(
        &self,
        ask: &Ask<'_>,
        resolved: &Resolved<'_>,
        took: Duration,
        answer: &Result<Outcome, LimiterError>,
    ) {
        let counted = count_as(answer);
        self.recorder.decided(resolved.index, counted, took);
        log(&Logged::of(ask, resolved.strategy), Some(took), counted, answer);
    }
}

/// What the store is asked.
fn decision<'a>(ask: &Ask<'a>, resolved: &Resolved<'a>, deadline: Option<Instant>) -> Decision<'a> {
    let Ask { resource, consumer, attributes, .. } = *ask;
    Decision {
        strategy: resolved.strategy,
        subject: Subject { resource, consumer, group: resolved.group, attributes },
        deadline,
        part: Part::ALL,
    }
}

const fn op(ask: &Ask<'_>) -> Op {
    if ask.peek { Op::Peek } else { Op::Charge }
}

/// What decides a question under `rules`, if it can be asked at all. A question that lacks something is
/// refused for every consumer: a list must not hide a caller's mistake.
pub fn resolve<'a>(rules: &'a Rules, ask: &Ask<'_>) -> Result<Resolved<'a>, LimiterError> {
    bounds::check(ask)?;
    let resolved = rules.resolve_for(ask.resource, ask.consumer, ask.strategy).map_err(bounds::shortened)?;
    bounds::check_needed(ask, resolved.strategy)?;
    Ok(resolved)
}

/// What the strategy says when the store says nothing.
#[cold]
fn fall_back<L>(strategy: &Strategy, error: StoreError) -> Result<Outcome<L>, LimiterError> {
    tracing::debug!(strategy = strategy.name(), %error, "the store could not decide");
    match strategy.on_store_failure() {
        FailurePolicy::Allow => Ok(Outcome::Policy { allowed: true }),
        FailurePolicy::Deny => Ok(Outcome::Policy { allowed: false }),
        FailurePolicy::Error => Err(LimiterError::Store { strategy: strategy.name().into(), error }),
    }
}

#[inline]
fn count_as<L: AsRef<[LimitVerdict]>>(answer: &Result<Outcome<L>, LimiterError>) -> Counted {
    match answer {
        Ok(Outcome::Decided { verdict, .. }) if verdict.allowed => Counted::Allowed,
        Ok(Outcome::Decided { limits, .. }) if is_never(limits.as_ref()) => Counted::Never,
        Ok(Outcome::Decided { .. }) => Counted::Denied,
        Ok(Outcome::Listed(Listed::Deny)) => Counted::DenyList,
        Ok(Outcome::Listed(Listed::Allow)) => Counted::AllowList,
        Ok(Outcome::Policy { allowed: true }) => Counted::DegradedAllowed,
        Ok(Outcome::Policy { allowed: false }) => Counted::DegradedDenied,
        Err(_) => Counted::Error,
    }
}

fn is_never(limits: &[LimitVerdict]) -> bool {
    limits.iter().any(|limit| limit.retry == Retry::Never)
}
