//! What a decision comes to: the policy's answer where the store has none, the count, and the log line.

use std::time::Duration;

use weir_core::algorithm::LimitVerdict;
use weir_core::strategy::{FailurePolicy, Listed, Strategy};
use weir_store::StoreError;
use weir_units::Retry;

use super::answer::{LimiterError, Outcome};
use super::log::LogFields;
use crate::telemetry::CountedOutcome as Counted;

/// What the policy answers when the store cannot; `None` where the caller gets the error.
pub(super) const fn policy_answer(policy: FailurePolicy) -> Option<bool> {
    match policy {
        FailurePolicy::Allow => Some(true),
        FailurePolicy::Deny => Some(false),
        FailurePolicy::Error => None,
    }
}

/// What the strategy says when the store says nothing.
#[cold]
pub(super) fn fall_back<'l>(strategy: &Strategy, error: StoreError) -> Result<Outcome<'l>, LimiterError> {
    match error {
        StoreError::Unsupported(why) => return Err(LimiterError::Unsupported(why.to_owned())),
        StoreError::OtherCost(known) => return Err(LimiterError::OtherCost(known)),
        _ => {}
    }
    tracing::debug!(strategy = strategy.name(), %error, "the store could not decide");
    match policy_answer(strategy.on_store_failure()) {
        Some(allowed) => Ok(Outcome::Policy { allowed }),
        None => {
            let whose = format!("strategy `{}`", strategy.name()).into();
            Err(LimiterError::Store { whose, error })
        }
    }
}

/// Under which outcome a decision counts.
#[inline]
pub(super) fn count_as(outcome: &Result<Outcome<'_>, LimiterError>) -> Counted {
    match outcome {
        Ok(Outcome::Decided { verdict, .. }) if verdict.allowed => Counted::Allowed,
        Ok(Outcome::Decided { limits, .. }) if is_never(limits) => Counted::Never,
        Ok(Outcome::Decided { .. }) => Counted::Denied,
        Ok(Outcome::Listed(Listed::Deny)) => Counted::DenyList,
        Ok(Outcome::Listed(Listed::Allow)) => Counted::AllowList,
        Ok(Outcome::Policy { allowed: true }) => Counted::DegradedAllowed,
        Ok(Outcome::Policy { allowed: false }) => Counted::DegradedDenied,
        Err(_) => Counted::Error,
    }
}

/// What a decision counts as cost: what was charged, or of a call that was not allowed, what it asked for. Peeks and
/// repeated calls charge nothing.
#[inline]
pub(super) fn cost_of(outcome: &Result<Outcome<'_>, LimiterError>, cost: u64, peek: bool) -> u64 {
    match outcome {
        _ if peek => 0,
        Ok(Outcome::Decided { verdict, .. }) if verdict.allowed => {
            if verdict.applied {
                verdict.granted
            } else {
                0
            }
        }
        _ => cost,
    }
}

#[inline]
fn is_never(limits: &[LimitVerdict]) -> bool {
    limits.iter().any(|limit| limit.retry == Retry::Never)
}

/// Writes the log line of a decision.
#[inline]
pub(super) fn log(
    asked: &LogFields<'_>,
    took: Option<Duration>,
    counted: Counted,
    error: Option<&LimiterError>,
) {
    tracing::debug!(
        strategy = asked.strategy.name(),
        resource = asked.resource,
        consumer = asked.consumer,
        cost = asked.cost,
        peek = asked.peek,
        outcome = counted.name(),
        error = error.map(tracing::field::display),
        took_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        "decided"
    );
}
