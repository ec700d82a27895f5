//! What becomes of a question, and why there may be no answer.

use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::{Listed, Strategy, Unknown};
use weir_store::StoreError;

use super::InvalidField;
use super::advice::Advice;
use super::waiting::Waiting;

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
    pub outcome: Outcome<'l>,
    /// Of the binding limit, where the question asks for it and limits were asked.
    pub advice: Option<Advice>,
}

/// What was decided, and by whom.
#[derive(Debug, Clone)]
pub enum Outcome<'l> {
    /// The store decided.
    Decided {
        /// Over all limits.
        verdict: Verdict,
        /// Of each limit, in the order of the strategy.
        limits: &'l [LimitVerdict],
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
    /// The store could not take back what it was to take back.
    #[error("not undone: {0}")]
    NotUndone(StoreError),
    /// The store could not count what was used.
    #[error("not counted: {0}")]
    NotCounted(StoreError),
}
