//! A question under a strategy whose limits have costs of their own.

use std::sync::Arc;

use weir_core::algorithm::budget::{Ask, CostedLimits};
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_store::Decision;

use super::{LimiterError, Question, costs};
use crate::telemetry::TotalsRow;

pub(super) struct CostedSlot<'q, 'm> {
    pub(super) row: TotalsRow,
    pub(super) strategy: &'q Arc<Strategy>,
    pub(super) costed: &'q Arc<CostedLimits>,
    pub(super) question: &'q Question<'m>,
    pub(super) subject: Subject<'q>,
    pub(super) ask: Ask,
}

impl<'q, 'm: 'q> CostedSlot<'q, 'm> {
    /// The cost of all limits, or the slot of a question whose limits have costs of their own.
    #[inline(always)]
    pub(super) fn cost_of(
        (row, strategy, group): (TotalsRow, &'q Arc<Strategy>, Option<&'q str>),
        question: &'q Question<'m>,
    ) -> Result<Result<&'q u64, Box<Self>>, LimiterError> {
        let Some(costed) = strategy.costed() else { return Ok(Ok(&question.cost)) };
        match costs::plain_cost(question, strategy, costed)? {
            Some(cost) => Ok(Ok(cost)),
            None => Self::read(row, (strategy, costed), question, group).map(Err),
        }
    }

    /// Checks what the question asks.
    #[cold]
    fn read(
        row: TotalsRow,
        (strategy, costed): (&'q Arc<Strategy>, &'q Arc<CostedLimits>),
        question: &'q Question<'m>,
        group: Option<&'q str>,
    ) -> Result<Box<Self>, LimiterError> {
        let ask = costs::ask(question, strategy, costed)?;
        Ok(Box::new(Self { row, strategy, costed, question, subject: question.subject(group), ask }))
    }

    /// The question as one without costs, for logs and shadows.
    pub(super) fn plain(&self) -> Decision<'_> {
        Decision {
            part: self.question.part(),
            deadline: self.question.deadline.as_ref(),
            caller: self.question.caller,
            ..Decision::new(
                self.strategy,
                self.subject,
                self.question.op(),
                std::slice::from_ref(&self.question.cost),
            )
        }
    }
}
