//! Questions over limits with costs of their own. The node decides them without a hold, so the settlement charges the use, and each
//! limit begins with its whole part: what the store knows of holds is not known here.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::algorithm::budget::Ask;
use weir_core::strategy::Strategy;

use super::LocalShared;
use crate::{BudgetDecision, BudgetOp, OwnedSubject, Store as _, StoreAnswer, StoreError, Verdicts};

/// A question that the node decides if the store does not.
struct OwnQuestion {
    node: LocalShared,
    strategy: Arc<Strategy>,
    subject: OwnedSubject,
    asked: Ask,
    caller: u32,
}

/// The answer of the store, or of the node if the store has none. A settlement, a change, and a charge that happens once
/// need the store.
pub(super) fn answered(
    node: &LocalShared,
    decision: &BudgetDecision<'_>,
    answer: StoreAnswer<Verdicts>,
) -> StoreAnswer<Verdicts> {
    let BudgetOp::Ask(asked) = decision.op else { return answer };
    if asked.has_id && asked.hold_for.is_none() {
        return answer;
    }
    let own = || OwnQuestion {
        node: node.clone(),
        strategy: Arc::clone(decision.strategy),
        subject: OwnedSubject::new(&decision.subject),
        asked: Ask { has_id: false, hold_for: None, ..asked.clone() },
        caller: decision.caller,
    };
    match answer {
        StoreAnswer::Ready(Err(error)) if !error.is_callers() => {
            let own = own();
            StoreAnswer::Later(Box::pin(async move { own.decide(error).await }))
        }
        StoreAnswer::Ready(answer) => StoreAnswer::Ready(answer),
        StoreAnswer::Later(later) => {
            let own = own();
            StoreAnswer::Later(Box::pin(async move {
                match later.await {
                    Err(error) if !error.is_callers() => own.decide(error).await,
                    answer => answer,
                }
            }))
        }
    }
}

impl OwnQuestion {
    async fn decide(&self, error: StoreError) -> Result<Verdicts, StoreError> {
        let Some(strategy) = self.strategy.local().map(|local| local.strategy()) else { return Err(error) };
        let Some(costed) = strategy.costed() else { return Err(error) };
        let decision = BudgetDecision {
            strategy,
            costed,
            subject: self.subject.subject(),
            op: BudgetOp::Ask(&self.asked),
            id: "",
            deadline: None,
            caller: self.caller,
        };
        let states = &self.node.0;
        match self.node.memory().decide_costs(&decision).verdicts().await {
            Ok(mut verdicts) => {
                states.decided.fetch_add(1, Relaxed);
                // A part of a limit says nothing of the whole one.
                let limits = verdicts.budget.iter_mut().flat_map(|budget| &mut budget.limits);
                limits.for_each(|limit| limit.crossed_near = false);
                Ok(Verdicts { local: Some(error), ..verdicts })
            }
            Err(StoreError::Full(_)) => Err(StoreError::LocalFull(states.budget)),
            Err(other) => Err(other),
        }
    }
}
