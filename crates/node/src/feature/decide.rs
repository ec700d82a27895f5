//! The store of a worker, for features that decide by limits of their own.

use weir_store::{Answers, BudgetDecision, Decision, Store, StoreAnswer, Verdicts};

/// The store of a worker. A call of it is one virtual call per round.
pub trait Decide: Send + Sync {
    /// True if no answer comes later.
    fn is_at_once(&self) -> bool;

    /// Appends the answers to these decisions, as [`Store::decide`] does.
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers);

    /// Answers a question over limits with costs of their own, as [`Store::decide_costs`] does.
    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts>;
}

impl<S: Store> Decide for S {
    fn is_at_once(&self) -> bool {
        S::AT_ONCE
    }

    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        Store::decide(self, decisions, answers);
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        Store::decide_costs(self, decision)
    }
}
