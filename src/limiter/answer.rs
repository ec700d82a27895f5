//! A question, its answer, and why there may be none.

use std::time::Instant;

use super::InvalidField;
use crate::algorithm::{LimitVerdict, Verdict};
use crate::store::StoreError;
use crate::strategy::{Attributes, Listed, Strategy, Unknown};

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
    Invalid(#[from] InvalidField),
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
