//! Settlements of held calls, and other changes of limits with costs of their own.
//!
//! None of them is a decision, so no failure policy answers for the store: what could not be done is an error.

use std::sync::Arc;

use weir_config::AccessRight;
use weir_core::algorithm::budget::{
    BudgetLimitVerdict, BudgetVerdict, CostedLimits, SettleOutcome, SettledCosts,
};
use weir_core::strategy::{Limit, Listed, Resolved};
use weir_store::{BudgetDecision, BudgetOp, LimitSet, Store, StoreAnswer, no_verdict};
use weir_time::clock;

use super::{Adjusted, InvalidField, Limiter, LimiterError, Question, bounds, costs};

/// The answer to a settlement.
#[derive(Debug, Clone)]
pub struct SettledCall<'a> {
    /// False if it was settled before.
    pub applied: bool,
    /// The outcome; `None` for a consumer on an allow list, who is not charged.
    pub outcome: Option<SettleOutcome>,
    /// The limits, in the order of the strategy.
    pub limits: Vec<(&'a Limit, BudgetLimitVerdict)>,
}

impl<S: Store> Limiter<S> {
    /// Replaces the estimate of a held call by its real use, once. `cost` is that of limits without `cost:`.
    pub async fn settle_hold<'a>(
        &'a self,
        question: &'a Question<'_>,
        cost: Option<u64>,
    ) -> Result<SettledCall<'a>, LimiterError> {
        self.authorize(AccessRight::Debit, question)?;
        bounds::check_needed_id(question.id()).map_err(|error| self.refused(error.into()))?;
        let resolved = self.resolve(AccessRight::Debit, question)?;
        let strategy = resolved.strategy;
        let shaping = question.shaping.as_deref();
        let Some(costed) = strategy.costed().filter(|costed| costed.hold.is_some()) else {
            let named = shaping.map_or(Ok(()), |shaping| costs::check_names(shaping, strategy));
            return Err(self.refused(named.map_or_else(LimiterError::from, |()| costs::no_holds(strategy))));
        };
        let used = self.used(question, cost, &resolved, costed)?;
        if resolved.listing.is_some_and(|listing| listing.listed == Listed::Allow) {
            return Ok(SettledCall { applied: false, outcome: None, limits: Vec::new() });
        }
        let op = BudgetOp::Settle(&used);
        let verdict = self.change_costs(question, (&resolved, costed), (op, cost), question.id()).await?;
        let BudgetVerdict { applied, outcome, .. } = verdict;
        let limits = strategy.limits().iter().zip(verdict.limits).collect();
        Ok(SettledCall { applied, outcome, limits })
    }

    /// Charges the limits of the costs that are named.
    pub(super) async fn debit_costs<'a>(
        &self,
        question: &Question<'_>,
        cost: Option<u64>,
        (resolved, costed): (&Resolved<'a>, &Arc<CostedLimits>),
    ) -> Result<Adjusted<'a>, LimiterError> {
        let used = self.used(question, cost, resolved, costed)?;
        if used.cost.is_none() && used.costs.iter().all(Option::is_none) {
            let bound = "name the costs that were used: nothing was used that could be charged".to_owned();
            return Err(
                self.refused(InvalidField { field: "costs", value: "empty".to_owned(), bound }.into())
            );
        }
        let op = BudgetOp::Debit(&used);
        let verdict = self.change_costs(question, (resolved, costed), (op, cost), question.id()).await?;
        let BudgetVerdict { applied, fitted, .. } = verdict;
        let limits = resolved.strategy.limits().iter().zip(verdict.limits);
        let limits = limits.map(|(limit, one)| (limit, one.plain(), one.charged.unwrap_or(0))).collect();
        Ok(Adjusted { applied, fitted, cancelled_before: false, limits })
    }

    /// Gives units back, or empties limits. Returns whether this call did it, and the limits that were meant.
    pub(super) async fn undo_costs<'a>(
        &self,
        question: &Question<'_>,
        (resolved, costed): (&Resolved<'a>, &Arc<CostedLimits>),
        (limits, id): (LimitSet, &str),
        is_reset: bool,
    ) -> Result<super::Undone<'a>, LimiterError> {
        let op = if is_reset { BudgetOp::Reset(limits) } else { BudgetOp::Refund(question.cost, limits) };
        let cost = if is_reset { None } else { Some(question.cost) };
        let verdict = self.change_costs(question, (resolved, costed), (op, cost), id).await?;
        let all = resolved.strategy.limits().iter().zip(verdict.limits).enumerate();
        let meant = all.filter(|(index, _)| limits.has(*index));
        let limits = meant.map(|(_, (limit, one))| (limit, one.plain())).collect();
        Ok(super::Undone { applied: verdict.applied, limits })
    }

    fn used(
        &self,
        question: &Question<'_>,
        cost: Option<u64>,
        resolved: &Resolved<'_>,
        costed: &CostedLimits,
    ) -> Result<SettledCosts, LimiterError> {
        let shaping = question.shaping.as_deref();
        let none = super::Shaping::default();
        let used = costs::used(shaping.unwrap_or(&none), cost, resolved.strategy, costed);
        used.map_err(|error| self.refused(error))
    }

    async fn change_costs(
        &self,
        question: &Question<'_>,
        (resolved, costed): (&Resolved<'_>, &Arc<CostedLimits>),
        (op, cost): (BudgetOp<'_>, Option<u64>),
        id: &str,
    ) -> Result<BudgetVerdict, LimiterError> {
        let started = clock::monotonic();
        let decision = BudgetDecision {
            strategy: resolved.strategy,
            costed,
            subject: question.subject(resolved.group),
            op,
            id,
            deadline: self.store_deadline(question.deadline, started),
            caller: question.caller,
        };
        let answer = self.store.decide_costs(&decision);
        if self.rules.has_shadows() && !matches!(answer, StoreAnswer::Ready(Err(_))) {
            self.change_costed_shadows(&decision);
        }
        let result = answer.verdicts().await;
        if self.recorder.decision_log().is_some() {
            self.log_costs(&decision, question, cost, &result);
        }
        let took = clock::monotonic().saturating_duration_since(started);
        self.recorder.store_called(took, result.as_ref().err().filter(|error| !error.is_callers()));
        tracing::debug!(
            strategy = resolved.strategy.name(),
            resource = question.resource,
            consumer = question.consumer,
            ?op,
            error = result.as_ref().err().map(tracing::field::display),
            "changed"
        );
        let verdicts = result.map_err(LimiterError::not_done)?;
        let verdict = verdicts.budget.ok_or_else(no_verdict).map_err(LimiterError::NotDone)?;
        self.recorder.saw_holds(resolved.strategy, &decision.subject, &verdict);
        if matches!(op, BudgetOp::Settle(_) | BudgetOp::Debit(_)) {
            let row = self.recorder.row(resolved);
            self.recorder.used_costs(row, (resolved.strategy, question.consumer), &verdict);
        }
        Ok(*verdict)
    }
}
