//! Fields of a decision's log line.

use weir_core::algorithm::Op;
use weir_core::strategy::Strategy;
use weir_store::Decision;

use super::Question;

pub(super) struct LogFields<'a> {
    pub(super) strategy: &'a Strategy,
    pub(super) resource: &'a str,
    pub(super) consumer: &'a str,
    pub(super) cost: u64,
    pub(super) peek: bool,
}

/// Owned fields, for a pending question.
pub(super) struct OwnedLogFields {
    resource: String,
    consumer: String,
    cost: u64,
    peek: bool,
}

impl<'a> LogFields<'a> {
    pub(super) fn new(question: &'a Question<'_>, strategy: &'a Strategy) -> Self {
        let Question { resource, consumer, cost, peek, .. } = *question;
        Self { strategy, resource, consumer, cost, peek }
    }

    pub(super) fn of_decision(decision: &Decision<'a>) -> Self {
        let Decision { strategy, ref subject, op, costs, .. } = *decision;
        let cost = costs.first().copied().unwrap_or_default();
        let peek = op == Op::Peek;
        Self { strategy, resource: subject.resource, consumer: subject.consumer, cost, peek }
    }

    /// A cost of 0 where costs have names: their units differ, so they have no sum.
    pub(super) fn without_named_cost(self) -> Self {
        let costed = self.strategy.is_special().then(|| self.strategy.costed()).flatten();
        let cost = if costed.is_some_and(|costed| !costed.names.is_empty()) { 0 } else { self.cost };
        Self { cost, ..self }
    }

    /// Returns an owned copy, if the log takes lines of this level.
    pub(super) fn owned_if_logged(&self) -> Option<OwnedLogFields> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| OwnedLogFields {
            resource: self.resource.to_owned(),
            consumer: self.consumer.to_owned(),
            cost: self.cost,
            peek: self.peek,
        })
    }
}

impl OwnedLogFields {
    pub(super) fn of<'a>(&'a self, strategy: &'a Strategy) -> LogFields<'a> {
        let Self { resource, consumer, cost, peek } = self;
        LogFields { strategy, resource, consumer, cost: *cost, peek: *peek }
    }
}
