//! The end of a decision, for questions, Envoy's descriptors and leases.
//!
//! The failure policy is applied, and the outcome is counted, here and nowhere else.

use weir_core::strategy::{FailurePolicy, Listed, Strategy, WhenLocalFull};
use weir_store::StoreError;

use crate::guard::BanHit;
use crate::telemetry::CountedOutcome;

/// Outcome of a decision. `D` is the store's decision: of rate limits, of a descriptor or of permits.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<D> {
    /// The store decided.
    Decided(D),
    /// The store could not decide; the node did by itself, with the strategy's part of each limit.
    Local(D),
    /// The consumer is on a list: the store was not asked and nothing was charged.
    Listed(Listed),
    /// The consumer is banned: the store was not asked and nothing was charged.
    Banned(BanHit),
    /// The store could not decide; the strategy's failure policy did.
    Policy {
        /// True if the call may go ahead.
        allowed: bool,
    },
}

/// A decision of the store.
pub trait StoreDecision {
    /// `Allowed`, `Repeated`, `Denied` or `Never`.
    fn counted(&self) -> CountedOutcome;
}

/// The store's decision, or the failure policy's instead.
///
/// # Errors
///
/// The store's error, if the policy of `strategy` is to return it, or if it is the caller's mistake.
#[inline(always)]
pub fn settle<D>(strategy: &Strategy, decision: Result<D, StoreError>) -> Result<Outcome<D>, StoreError> {
    match decision {
        Ok(decision) => Ok(Outcome::Decided(decision)),
        Err(error) => by_policy(strategy, error).map(|allowed| Outcome::Policy { allowed }),
    }
}

#[cold]
fn by_policy(strategy: &Strategy, error: StoreError) -> Result<bool, StoreError> {
    if error.is_callers() {
        return Err(error);
    }
    tracing::debug!(strategy = strategy.name(), %error, "store cannot decide");
    match strategy.on_store_failure() {
        FailurePolicy::Allow => Ok(true),
        FailurePolicy::Deny => Ok(false),
        FailurePolicy::Error => Err(error),
        FailurePolicy::Local(policy) => match (&error, policy.when_full) {
            (StoreError::LocalFull(_), WhenLocalFull::Allow) => Ok(true),
            (StoreError::LocalFull(_), WhenLocalFull::Deny) => Ok(false),
            // What a node cannot decide by itself: under an id, or later than now.
            _ => Err(error),
        },
    }
}

/// The outcome under which a decision is counted and logged.
#[inline]
pub fn count_as<D: StoreDecision, E>(outcome: &Result<Outcome<D>, E>) -> CountedOutcome {
    match outcome {
        Ok(Outcome::Decided(decision)) => decision.counted(),
        Ok(Outcome::Local(decision)) => match decision.counted().is_allowed() {
            Some(true) => CountedOutcome::DegradedAllowed,
            _ => CountedOutcome::DegradedDenied,
        },
        Ok(Outcome::Listed(Listed::Deny)) => CountedOutcome::DenyList,
        Ok(Outcome::Listed(Listed::Allow)) => CountedOutcome::AllowList,
        Ok(Outcome::Banned(_)) => CountedOutcome::Banned,
        Ok(Outcome::Policy { allowed: true }) => CountedOutcome::DegradedAllowed,
        Ok(Outcome::Policy { allowed: false }) => CountedOutcome::DegradedDenied,
        Err(_) => CountedOutcome::Error,
    }
}

impl<D: StoreDecision> Outcome<D> {
    /// True if the call may go ahead.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Decided(decision) | Self::Local(decision) => decision.counted().is_allowed() == Some(true),
            Self::Listed(listed) => *listed == Listed::Allow,
            Self::Banned(_) => false,
            Self::Policy { allowed } => *allowed,
        }
    }
}
