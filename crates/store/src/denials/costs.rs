//! Denials over limits with costs of their own: the same cache, for the same costs. Only of strategies without holds, because a
//! settlement may end a denial at any time, and of plain questions: ids are not cached, nor is what may be granted in part.

use std::sync::Arc;
use std::time::Instant;

use weir_core::algorithm::Op;
use weir_core::algorithm::budget::{Ask, AskedCost, BudgetVerdict, CostedLimits};
use weir_core::strategy::Strategy;

use super::WorkerDenials;
use super::epochs::{Epochs, StateChange};
use super::holds::{MAX_STALENESS, holds_of_costs};
use super::known::Known;
use crate::{BudgetDecision, BudgetOp, Decision, Store, StoreAnswer, Verdicts};

struct SentCosts {
    strategy: Arc<Strategy>,
    costed: Arc<CostedLimits>,
    digest: u64,
    epochs: Epochs,
    epoch: u64,
    sent: Instant,
}

impl<S: Store> WorkerDenials<S> {
    /// Answers from the cache, or asks the store; what changes a state is noted.
    pub(super) fn decide_costs(self: &Arc<Self>, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        if self.shared.max_age.is_zero() || decision.costed.hold.is_some() {
            return self.store.decide_costs(decision);
        }
        let fields = Decision::new(decision.strategy, decision.subject, Op::Charge, &[]);
        let epochs = self.shared.epochs(&fields);
        match decision.op {
            BudgetOp::Ask(asked) if is_plain(decision.costed, asked) => {
                self.ask_costs(decision, asked, epochs)
            }
            op => {
                let changes = !matches!(op, BudgetOp::Ask(asked) if asked.peek);
                let change = changes.then(|| StateChange::of_tag(&self.shared, epochs));
                let this = Arc::clone(self);
                then(self.store.decide_costs(decision), move |verdicts| {
                    epochs.saw(&this.shared, verdicts, false);
                    drop(change);
                })
            }
        }
    }

    fn ask_costs(
        self: &Arc<Self>,
        decision: &BudgetDecision<'_>,
        asked: &Ask,
        epochs: Epochs,
    ) -> StoreAnswer<Verdicts> {
        let sent = SentCosts {
            strategy: Arc::clone(decision.strategy),
            costed: Arc::clone(decision.costed),
            digest: asked.digest(),
            epochs,
            epoch: epochs.sum(&self.shared),
            sent: self.shared.clock.now(),
        };
        let question = epochs.question(sent.strategy.id(), sent.digest);
        let known = self.known.lock();
        let answer = known.answer(&question, sent.epoch, sent.sent);
        if let Some(verdict) = answer.and_then(|answer| answer.costs(&sent.costed, asked)) {
            self.counts.hit();
            return StoreAnswer::Ready(Ok(Verdicts::of_costs(&sent.costed, verdict)));
        }
        drop(known);
        self.counts.missed();
        let change = (!asked.peek).then(|| StateChange::of_keys(&self.shared, epochs));
        let (this, charges) = (Arc::clone(self), !asked.peek);
        then(self.store.decide_costs(decision), move |verdicts| {
            // An admitted charge raises the epoch here. A denied one changed nothing.
            change.into_iter().for_each(StateChange::forget);
            let Some(verdict) = verdicts.budget.as_deref() else { return };
            let is_raised = epochs.saw(&this.shared, verdicts, charges && verdict.allowed);
            let epoch = sent.epoch.wrapping_add(if is_raised { epochs.step() } else { 0 });
            if !verdict.allowed {
                this.learn_costs(&SentCosts { epoch, ..sent }, verdict, verdicts);
            }
        })
    }

    /// Caches a denial for as long as it holds. Beside another limit for some milliseconds only: a call whose cost of the
    /// limit that denies is 0 passes it, and charges the others.
    fn learn_costs(&self, sent: &SentCosts, verdict: &BudgetVerdict, verdicts: &Verdicts) {
        if nears_by_itself(&sent.costed, verdict) {
            return;
        }
        let costs = |index: usize| verdict.limits.get(index).map_or(0, |one| one.cost);
        let holds = holds_of_costs(&sent.strategy, &verdicts.limits, costs).min(self.shared.max_age);
        let holds = if verdict.limits.len() > 1 { holds.min(MAX_STALENESS) } else { holds };
        let received = self.shared.clock.now();
        let answer = Verdicts { budget: Some(Box::new(verdict.clone())), ..Verdicts::default() };
        let known = Known { epoch: sent.epoch, received, until: sent.sent + holds, answer };
        if known.until > received {
            self.known.lock().keep(sent.epochs.question(sent.strategy.id(), sent.digest), known);
        }
    }
}

/// True if a denial of this question may be cached. The same costs are then those that the answer has.
fn is_plain(costed: &CostedLimits, asked: &Ask) -> bool {
    let is_whole = |cost: &AskedCost| cost.at_least.is_none();
    let counts_denied = || costed.limits.iter().any(|limit| limit.algorithm.counts_denied());
    !asked.has_id && asked.hold_for.is_none() && asked.costs.iter().all(is_whole) && !counts_denied()
}

/// True if a limit may no longer be near before a unit of it has come back.
fn nears_by_itself(costed: &CostedLimits, verdict: &BudgetVerdict) -> bool {
    costed.limits.iter().zip(&verdict.limits).any(|(limit, one)| {
        let left = one.remaining.saturating_mul(limit.algorithm.weight());
        limit.near_level().is_some_and(|mark| limit.algorithm.capacity().saturating_sub(left) == mark)
    })
}

/// Calls `after` with the verdicts, now or when they come. If there are none, it is dropped.
#[inline]
pub(super) fn then(
    answer: StoreAnswer<Verdicts>,
    after: impl FnOnce(&Verdicts) + Send + 'static,
) -> StoreAnswer<Verdicts> {
    match answer {
        StoreAnswer::Ready(verdicts) => {
            if let Ok(verdicts) = &verdicts {
                after(verdicts);
            }
            StoreAnswer::Ready(verdicts)
        }
        StoreAnswer::Later(verdicts) => StoreAnswer::Later(Box::pin(async move {
            let verdicts = verdicts.await?;
            after(&verdicts);
            Ok(verdicts)
        })),
    }
}
