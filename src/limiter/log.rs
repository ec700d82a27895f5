//! The log line of a decision.

use std::time::Duration;

use super::{Ask, LimiterError, Outcome};
use crate::key::Subject;
use crate::store::Single;
use crate::strategy::Strategy;
use crate::telemetry::CountedOutcome as Counted;

/// What a log line says of a question.
pub(super) struct Logged<'a> {
    strategy: &'a Strategy,
    resource: &'a str,
    consumer: &'a str,
    cost: u64,
    peek: bool,
}

impl<'a> Logged<'a> {
    pub(super) fn of(ask: &Ask<'a>, strategy: &'a Strategy) -> Self {
        let Ask { resource, consumer, cost, peek, .. } = *ask;
        Self { strategy, resource, consumer, cost, peek }
    }

    pub(super) fn of_single(single: &Single<'a>) -> Self {
        let Single { strategy, subject: Subject { resource, consumer, .. }, cost, peek } = *single;
        Self { strategy, resource, consumer, cost, peek }
    }
}

/// The line itself.
#[inline]
pub(super) fn log<L>(
    asked: &Logged<'_>,
    took: Option<Duration>,
    counted: Counted,
    answer: &Result<Outcome<L>, LimiterError>,
) {
    tracing::debug!(
        strategy = asked.strategy.name(),
        resource = asked.resource,
        consumer = asked.consumer,
        cost = asked.cost,
        peek = asked.peek,
        outcome = counted.name(),
        error = answer.as_ref().err().map(tracing::field::display),
        took_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        "decided"
    );
}
