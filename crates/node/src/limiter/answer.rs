//! What becomes of a question, and why there may be no answer.

use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::{Strategy, Unknown};
use weir_store::StoreError;
use weir_units::Retry;

use super::InvalidField;
use super::advice::Advice;
use super::waiting::Waiting;
use crate::settle::{Outcome, StoreDecision};
use crate::telemetry::CountedOutcome;

/// What becomes of a question at first.
pub enum Begun<'a, 'l> {
    /// It has an answer.
    Answered(Result<Answer<'a, 'l>, LimiterError>),
    /// The store must be waited for.
    Waiting(Waiting),
}

/// An answer, and the strategy that it is under. What its limits say is borrowed.
#[derive(Debug, Clone)]
pub struct Answer<'a, 'l> {
    /// The strategy that applied.
    pub strategy: &'a Strategy,
    /// What it says.
    pub outcome: Outcome<LimitsDecision<'l>>,
    /// Of the binding limit, where the question asks for it and limits were asked.
    pub advice: Option<Advice>,
}

/// What the store decided over the limits of a strategy.
#[derive(Debug, Clone, Copy)]
pub struct LimitsDecision<'l> {
    /// Over all limits.
    pub verdict: Verdict,
    /// Of each limit, in the order of the strategy.
    pub limits: &'l [LimitVerdict],
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimiterError {
    /// A field breaks its bound.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The request lacks something.
    #[error("{0}")]
    Incomplete(String),
    /// The configuration does not know what was named.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The store could not decide, and the policy is to say so.
    #[error("{whose}: {error}")]
    Store {
        /// Whose policy: "strategy `name`", or "rule `name`" of Envoy's.
        whose: Box<str>,
        /// Why the store could not decide.
        error: StoreError,
    },
    /// What was asked for means nothing for these limits.
    #[error("{0}")]
    Unsupported(String),
    /// The id is that of a decision with another cost.
    #[error("id is known with another cost, {0}; a call with another cost needs another id")]
    OtherCost(u64),
    /// The store could not debit, cancel, refund or reset.
    #[error("not done: {0}")]
    NotDone(StoreError),
    /// The store could not count what was used.
    #[error("not counted: {0}")]
    NotCounted(StoreError),
}

impl StoreDecision for LimitsDecision<'_> {
    #[inline]
    fn counted(&self) -> CountedOutcome {
        if self.verdict.allowed {
            CountedOutcome::Allowed
        } else if self.limits.iter().any(|limit| limit.retry == Retry::Never) {
            CountedOutcome::Never
        } else {
            CountedOutcome::Denied
        }
    }
}

impl LimiterError {
    /// The store could not decide under `strategy`, and no policy did.
    #[cold]
    pub(crate) fn of_store(strategy: &Strategy, error: StoreError) -> Self {
        match error {
            StoreError::Unsupported(why) => Self::Unsupported(why.to_owned()),
            StoreError::OtherCost(known) => Self::OtherCost(known),
            error => Self::Store { whose: format!("strategy `{}`", strategy.name()).into(), error },
        }
    }
}
