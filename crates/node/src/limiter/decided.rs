//! Decisions of the store over the limits of a strategy, and the errors that replace an answer.

use weir_core::algorithm::budget::BudgetVerdict;
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::{Strategy, Unknown};
use weir_store::StoreError;
use weir_units::Retry;

use super::InvalidField;
use crate::access::Refused;
use crate::settle::StoreDecision;
use crate::telemetry::CountedOutcome;

/// The store's decision over the limits of a strategy.
#[derive(Debug, Clone, Copy)]
pub struct LimitsDecision<'l> {
    /// The verdict over all limits.
    pub verdict: Verdict,
    /// The verdict of each limit, in the order of the strategy.
    pub limits: &'l [LimitVerdict],
    /// The verdict over limits with costs of their own, which the others summarize.
    pub costs: Option<&'l BudgetVerdict>,
}

/// Reason that there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimiterError {
    /// A field breaks its bound.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The caller has no right to it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A required field is missing.
    #[error("{what}")]
    Incomplete {
        /// Name of the field.
        field: &'static str,
        /// Sentence for the caller, which may be that of another service in whose place Weir stands.
        what: &'static str,
    },
    /// The configuration does not know what was named.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The store failed, and the failure policy is to return the error.
    #[error("{whose}: {error}")]
    Store {
        /// Owner of the policy: "strategy `name`", or "rule `name`" of Envoy's.
        whose: Box<str>,
        /// Error of the store.
        error: StoreError,
    },
    /// The operation is not defined for these limits.
    #[error("{0}")]
    Unsupported(String),
    /// The id belongs to a decision with another cost.
    #[error("id is known with another cost, {0}; a call with another cost needs another id")]
    OtherCost(u64),
    /// The id belongs to a call with other costs, or it is settled, or its hold has ended.
    #[error(
        "id is known with other costs, or its hold was settled or has ended; a call with other costs, and each attempt, \
         needs an id of its own"
    )]
    OtherContents,
    /// The open holds of one limit end at too many times.
    #[error("not held: {0}; hold for fewer different times, or settle earlier")]
    TooManyEnds(StoreError),
    /// The memory store has no room for another id; the size of their share.
    #[error(
        "no room for another id: those of earlier calls use all of store.memory.id_share, {0} bytes; calls without an id go on"
    )]
    IdsFull(usize),
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

impl LimitsDecision<'_> {
    /// True if this call was charged. What is charged by name has no sum.
    pub(super) fn is_charged(&self) -> bool {
        self.verdict.applied && (self.verdict.granted > 0 || self.costs.is_some())
    }

    pub(super) fn counted_by_charge(&self) -> CountedOutcome {
        match self.counted() {
            CountedOutcome::Allowed if !self.is_charged() => CountedOutcome::uncharged(self.verdict.applied),
            counted => counted,
        }
    }
}

impl LimiterError {
    /// An error of a change that is no decision.
    pub(super) fn not_done(error: StoreError) -> Self {
        match error {
            StoreError::OtherContents => Self::OtherContents,
            error => Self::NotDone(error),
        }
    }

    /// An error of the store under `strategy` that no policy replaced.
    #[cold]
    pub fn of_store(strategy: &Strategy, error: StoreError) -> Self {
        match error {
            StoreError::Unsupported(why) => {
                let limits = strategy.limits().iter().map(|limit| format!("`{}`", limit.name));
                let limits = limits.collect::<Vec<_>>().join(", ");
                Self::Unsupported(format!("{why}; strategy `{}` has the limits {limits}", strategy.name()))
            }
            StoreError::OtherCost(known) => Self::OtherCost(known),
            StoreError::OtherContents => Self::OtherContents,
            StoreError::TooManyEnds => Self::TooManyEnds(error),
            StoreError::IdsFull(bytes) => Self::IdsFull(bytes),
            error => Self::Store { whose: format!("strategy `{}`", strategy.name()).into(), error },
        }
    }
}
