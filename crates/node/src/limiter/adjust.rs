//! Debits of actual use, and cancelled reservations.
//!
//! Neither is a decision, so the failure policy does not apply: a failed store is an error.

use weir_config::AccessRight;
use weir_core::algorithm::{LimitVerdict, Op, Verdict};
use weir_core::strategy::{Limit, Resolved};
use weir_store::{Decision, Part, Store, Verdicts, no_verdict};
use weir_time::clock;

use super::{Limiter, LimiterError, Question, bounds, costs};

/// State of limits after a debit or a cancellation.
#[derive(Debug, Clone)]
pub struct Adjusted<'a> {
    /// True if this call changed anything. False for a debit whose id was charged before, and for a cancellation
    /// without a reservation.
    pub applied: bool,
    /// Debits only: true if the cost fitted.
    pub fitted: bool,
    /// Cancellations only: true if the reservation was cancelled before.
    pub cancelled_before: bool,
    /// The limits, in the order of the strategy, each with what the debit charged to it, now or when it was made.
    pub limits: Vec<(&'a Limit, LimitVerdict, u64)>,
}

impl<S: Store> Limiter<S> {
    /// Charges what was used, also above the limits; under an id only once.
    /// `cost` is what the request names, for limits without `cost:`.
    pub async fn debit<'a>(
        &'a self,
        question: &'a Question<'_>,
        cost: Option<u64>,
    ) -> Result<Adjusted<'a>, LimiterError> {
        self.authorize(AccessRight::Debit, question)?;
        bounds::check_debit(question.cost, question.id()).map_err(|error| self.refused(error.into()))?;
        let resolved = self.resolve(AccessRight::Debit, question)?;
        match resolved.strategy.costed() {
            Some(costed) => self.debit_costs(question, cost, (&resolved, costed)).await,
            None => self.adjust(question, &resolved, Op::Force).await,
        }
    }

    /// Gives back what was reserved under the question's id.
    pub async fn cancel<'a>(&'a self, question: &'a Question<'_>) -> Result<Adjusted<'a>, LimiterError> {
        self.authorize(AccessRight::Decide, question)?;
        bounds::check_needed_id(question.id()).map_err(|error| self.refused(error.into()))?;
        let resolved = self.resolve(AccessRight::Decide, question)?;
        self.adjust(question, &resolved, Op::Cancel).await
    }

    async fn adjust<'a>(
        &self,
        question: &Question<'_>,
        resolved: &Resolved<'a>,
        op: Op,
    ) -> Result<Adjusted<'a>, LimiterError> {
        if let Some(shaping) = question.shaping.as_deref() {
            costs::check_names(shaping, resolved.strategy).map_err(|error| self.refused(error.into()))?;
        }
        let (verdict, verdicts) = self.change(question, resolved, op, question.part()).await?;
        let limits = resolved.strategy.limits().iter().zip(verdicts.limits).map(|(limit, one)| {
            let charged = match op {
                Op::Force if verdict.applied => limit.algorithm.debited(one.level_before, question.cost),
                // It was made before; `level_before` is what it charged then.
                Op::Force => one.level_before,
                _ => 0,
            };
            (limit, one, charged)
        });
        let Verdict { applied, fitted, granted, .. } = verdict;
        let cancelled_before = matches!(op, Op::Cancel) && granted > 0;
        Ok(Adjusted { applied, fitted, cancelled_before, limits: limits.collect() })
    }

    /// Asks the store for a change that is no decision: a debit, a cancellation, a refund or a reset.
    pub(super) async fn change(
        &self,
        question: &Question<'_>,
        resolved: &Resolved<'_>,
        op: Op,
        part: Option<&Part<'_>>,
    ) -> Result<(Verdict, Verdicts), LimiterError> {
        let deadline = self.store_deadline(question.deadline, clock::monotonic());
        let decision = Decision {
            strategy: resolved.strategy,
            subject: question.subject(resolved.group),
            op,
            costs: &[question.cost],
            part,
            deadline: deadline.as_ref(),
            caller: question.caller,
        };
        let result = self.ask(&decision, question).await;
        tracing::debug!(
            strategy = resolved.strategy.name(),
            resource = question.resource,
            consumer = question.consumer,
            ?op,
            cost = question.cost,
            error = result.as_ref().err().map(tracing::field::display),
            "changed"
        );
        let verdicts = result.map_err(LimiterError::NotDone)?;
        let verdict = verdicts.decisions.first().ok_or_else(no_verdict).map_err(LimiterError::NotDone)?;
        Ok((*verdict, verdicts))
    }
}
