//! The use case: which strategy, what its limits say, what answers when the store cannot, one event.

mod bounds;
mod deadline;
pub mod envoy;
mod round;
mod several;
mod undo;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use bounds::{Invalid, MAX_BATCH, MAX_REFUND_ID, check_batch};
pub use round::Round;
pub use several::Lent;
pub use undo::Undone;

use crate::algorithm::{LimitVerdict, Op, Verdict};
use crate::clock;
use crate::key::Subject;
use crate::store::{Decision, Part, Single, Store, StoreError, Verdicts, no_verdict};
use crate::strategy::{Attributes, FailurePolicy, Listed, Resolved, Rules, Strategy, Unknown};
use crate::telemetry::{Outcome as Counted, Recorder, Rejection};
use crate::units::Retry;

/// Answers questions from one store under one set of rules. Each worker has its own.
pub struct Limiter<S> {
    rules: Arc<Rules>,
    store: S,
    recorder: Arc<Recorder>,
}

/// One question: may this consumer use this resource now?
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is used.
    pub resource: &'a str,
    /// Who uses it; may be empty where no limit is scoped to the consumer.
    pub consumer: &'a str,
    /// A configured strategy; empty means the resource's own.
    pub strategy: &'a str,
    /// How much the call takes; 0 looks.
    pub cost: u64,
    /// Answer as if charged, and charge nothing.
    pub peek: bool,
    /// Further facts, by name; scopes may count by them.
    pub attributes: Attributes<'a>,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
}

/// What each limit says.
pub type Limits = smallvec::SmallVec<[LimitVerdict; 2]>;

/// An answer, and the strategy that it is under. What its limits say is its own, or borrowed.
#[derive(Debug, Clone)]
pub struct Answer<'a, L = Limits> {
    /// The strategy that applied.
    pub strategy: &'a Strategy,
    /// What it says.
    pub outcome: Outcome<L>,
}

/// What was decided, and by whom.
#[derive(Debug, Clone)]
pub enum Outcome<L = Limits> {
    /// The store decided.
    Decided {
        /// Over all limits.
        verdict: Verdict,
        /// Of each limit, in the order of the strategy.
        limits: L,
    },
    /// The consumer is on a list; no limit was asked and nothing was charged.
    Listed(Listed),
    /// The store could not decide; the strategy's failure policy did.
    Policy {
        /// Whether the call may go ahead.
        allowed: bool,
    },
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimiterError {
    /// A field breaks its bound.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The configuration does not know what was named.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The store could not decide, and the strategy's policy is to say so.
    #[error("strategy `{strategy}`: {error}")]
    Store {
        /// The strategy that applied.
        strategy: Box<str>,
        /// Why the store could not decide.
        error: StoreError,
    },
    /// What was asked for means nothing for these limits.
    #[error("{0}")]
    Unsupported(String),
    /// The store could not take back what it was to take back.
    #[error("not undone: {0}")]
    NotUndone(StoreError),
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
            self.tell(ask, &resolved, Duration::ZERO, &answer);
            return answer.map(|outcome| Answer { strategy: resolved.strategy, outcome });
        }
        let started = clock::monotonic();
        let result = self.ask_store(ask, &resolved, started).await;
        let took = clock::monotonic().saturating_duration_since(started);
        self.recorder.store_called(took, result.as_ref().err());
        let answer = result.or_else(|error| fall_back(resolved.strategy, error));
        self.tell(ask, &resolved, took, &answer);
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
    fn tell(
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

/// What a log line says of a question.
struct Logged<'a> {
    strategy: &'a Strategy,
    resource: &'a str,
    consumer: &'a str,
    cost: u64,
    peek: bool,
}

impl<'a> Logged<'a> {
    fn of(ask: &Ask<'a>, strategy: &'a Strategy) -> Self {
        let Ask { resource, consumer, cost, peek, .. } = *ask;
        Self { strategy, resource, consumer, cost, peek }
    }

    fn of_single(single: &Single<'a>) -> Self {
        let Single { strategy, subject: Subject { resource, consumer, .. }, cost, peek } = *single;
        Self { strategy, resource, consumer, cost, peek }
    }
}

#[inline]
fn log<L>(
    asked: &Logged<'_>,
    took: Option<Duration>,
    counted: Counted,
    answer: &Result<Outcome<L>, LimiterError>,
) {
    tracing::debug!(
        strategy = asked.strategy.name(),
        resource = ?asked.resource,
        consumer = ?asked.consumer,
        cost = asked.cost,
        peek = asked.peek,
        outcome = counted.name(),
        error = answer.as_ref().err().map(tracing::field::display),
        took_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        "decided"
    );
}

/// What decides a question under `rules`, if it can be asked at all. A question that lacks something is
/// refused whoever asks: that somebody is on a list must not hide a caller's mistake.
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
