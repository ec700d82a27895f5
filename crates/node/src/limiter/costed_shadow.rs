//! Shadows with costs by limit, and shadows of strategies with named costs.

use std::sync::Arc;

use weir_core::algorithm::Op;
use weir_core::algorithm::budget::{CostedLimits, SettledCosts};
use weir_core::strategy::Strategy;
use weir_store::{
    BudgetDecision, BudgetOp, Decision, LimitSet, Part, Store, StoreAnswer, Verdicts, decide_one,
};

use super::{Limiter, Question, costs};
use crate::telemetry::CountedOutcome;

/// The use that a debit names, and the limits of the live strategy, which have the names.
pub(super) type NamedUse<'a> = (&'a CostedLimits, &'a SettledCosts);

impl<S: Store> Limiter<S> {
    /// Puts a question to the store for a shadow whose limits have costs of their own.
    pub(super) fn ask_costed(
        &self,
        (question, group): (&Question<'_>, Option<&str>),
        (strategy, costed): (&Arc<Strategy>, &Arc<CostedLimits>),
    ) -> Result<StoreAnswer<Verdicts>, CountedOutcome> {
        let asked = costs::ask_of_shadow(question, costed).ok_or(CountedOutcome::Error)?;
        Ok(self.store.decide_costs(&BudgetDecision {
            strategy,
            costed,
            subject: question.subject(group),
            op: BudgetOp::Ask(&asked),
            id: question.id(),
            deadline: question.deadline,
            caller: question.caller,
        }))
    }

    /// Makes a change of limits with costs of their own also to the shadows of their strategy. There are none beside holds.
    #[cold]
    pub(super) fn change_costed_shadows(&self, decision: &BudgetDecision<'_>) {
        let BudgetDecision { strategy, costed, subject, id, deadline, caller, .. } = *decision;
        let (op, cost, limits, used) = match decision.op {
            BudgetOp::Debit(used) => {
                (Op::Force, used.cost.unwrap_or_default(), LimitSet::ALL, Some((&**costed, used)))
            }
            BudgetOp::Refund(units, limits) => (Op::Refund, units, limits, None),
            BudgetOp::Reset(limits) => (Op::Reset, 0, limits, None),
            BudgetOp::Ask(_) | BudgetOp::Settle(_) => return,
        };
        let (costs, part, deadline) = (&[cost], Some(&Part { limits, id }), deadline.as_ref());
        self.change_shadows(&Decision { strategy, subject, op, costs, part, deadline, caller }, used);
    }

    /// Makes a change to one shadow. `None` if the change names no cost that the shadow takes.
    pub(super) fn change_shadow(
        &self,
        decision: &Decision<'_>,
        used: Option<NamedUse<'_>>,
    ) -> Option<StoreAnswer<Verdicts>> {
        let Decision { strategy, subject, op, part, deadline, caller, .. } = *decision;
        let cost = decision.costs.first().copied().unwrap_or_default();
        // What a debit says of limits without `cost:`.
        let plain = used.map_or(Some(cost), |(_, used)| used.cost);
        let debited;
        let (limits, id) = part.map_or((LimitSet::ALL, ""), |part| (part.limits, part.id));
        let costed = strategy.costed().filter(|_| strategy.approximate().is_none());
        let (costed, op) = match (costed, op) {
            (Some(costed), Op::Force) => {
                let named = |name: &str| {
                    let (live, used) = used?;
                    let place = live.names.iter().position(|other| **other == *name)?;
                    used.costs.get(place).copied().flatten()
                };
                let by_name = costed.names.iter().map(|name| named(name)).collect();
                debited = SettledCosts { costs: by_name, cost: plain };
                (costed, BudgetOp::Debit(&debited))
            }
            (Some(costed), Op::Refund) => (costed, BudgetOp::Refund(cost, limits)),
            (Some(costed), Op::Reset) => (costed, BudgetOp::Reset(limits)),
            (None, Op::Force) => {
                let cost = [plain?];
                return Some(decide_one(&*self.store, &Decision { costs: &cost, ..*decision }));
            }
            _ => return Some(decide_one(&*self.store, decision)),
        };
        let deadline = deadline.copied();
        let decision = BudgetDecision { strategy, costed, subject, op, id, deadline, caller };
        Some(self.store.decide_costs(&decision))
    }
}
