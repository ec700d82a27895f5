//! The outcome, the cost and the log line of a decision.

use std::time::Duration;

use weir_core::strategy::Strategy;

use super::advice::binding;
use super::decided::{LimiterError, LimitsDecision};
use super::log::LogFields;
use crate::settle::{self, Outcome};
use crate::telemetry::{CountedOutcome as Counted, Recorder, TotalsRow};

/// The outcome and the cost that are counted. A call that passes without a charge has an outcome of its own, so that
/// the counts of `allowed` are the charges.
#[inline]
pub(super) fn counted(
    outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
    cost: u64,
    peek: bool,
) -> (Counted, u64) {
    let (counted, cost) = (settle::count_as(outcome), cost_of(outcome, cost, peek));
    match outcome {
        Ok(Outcome::Decided(decision))
            if counted == Counted::Allowed && cost == 0 && (peek || !decision.is_charged()) =>
        {
            (Counted::uncharged(decision.verdict.applied), 0)
        }
        _ => (counted, cost),
    }
}

/// The granted cost, or the requested one if the call was not allowed. Peeks and repeated calls count 0.
#[inline]
fn cost_of(outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>, cost: u64, peek: bool) -> u64 {
    match outcome {
        _ if peek => 0,
        Ok(
            Outcome::Decided(LimitsDecision { verdict, .. }) | Outcome::Local(LimitsDecision { verdict, .. }),
        ) if verdict.allowed => {
            if verdict.applied {
                verdict.granted
            } else {
                0
            }
        }
        _ => cost,
    }
}

/// Counts a denial by the limit that denies longest.
#[inline]
pub(super) fn denied(
    recorder: &Recorder,
    row: TotalsRow,
    strategy: &Strategy,
    outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
) {
    if let Ok(Outcome::Decided(LimitsDecision { verdict, limits, .. })) = outcome
        && !verdict.allowed
    {
        // Most strategies have one limit, and nothing is to be compared.
        let limit = match strategy.algorithms() {
            [_] => Some(0),
            all => binding(all, limits),
        };
        limit.into_iter().for_each(|limit| recorder.denied(row, limit));
    }
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
        peer = %weir_grpc::current_peer(),
        took_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        "decided"
    );
}
