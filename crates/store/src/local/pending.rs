//! One decision on its way: what its answer teaches, and what the node decides if there is none.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;
use weir_core::algorithm::{Algorithm, LimitVerdict, Op, Verdict};
use weir_core::strategy::FailurePolicy;

use super::known::Use;
use super::own_strategies::OwnStrategy;
use super::{LocalShared, LocalWorker};
use crate::memory::{LocatedDecision, LocatedKeys, Locator};
use crate::{Decision, LimitSet, StoreError, Verdicts};

/// What an operation has to do with the node's own states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recourse {
    /// Nothing.
    None,
    /// Its answer teaches what was used. Without one it is an error: it has an id, or is due later.
    Learns,
    /// Its answer teaches what was used. Without one the node decides.
    Decides,
    /// It changes the store in ways that are not known: what is known is forgotten.
    Forgets,
    /// The same; without an answer the node gives back by itself.
    GivesBack,
}

impl Recourse {
    pub(super) fn of(decision: &Decision<'_>) -> Self {
        if decision.strategy.local().is_none() || decision.costs.len() != 1 {
            return Self::None;
        }
        let has_id = decision.part.is_some_and(|part| !part.id.is_empty());
        match decision.op {
            Op::Charge | Op::Peek | Op::AtMost if has_id => Self::Learns,
            Op::Charge | Op::Peek | Op::AtMost => Self::Decides,
            Op::Force | Op::Reserve { .. } => Self::Learns,
            Op::Refund if !has_id => Self::GivesBack,
            Op::Refund | Op::Reset => Self::Forgets,
            // Gives back at most what was taken: what is known may be more than what was used.
            Op::Cancel | Op::Count { .. } => Self::None,
        }
    }

    pub(super) fn is_concerned(self) -> bool {
        self != Self::None
    }

    /// True if the node answers for the store.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::Decides | Self::GivesBack)
    }
}

/// A decision whose store was asked. Owns its data.
pub(super) struct PendingDecision {
    node: Arc<LocalShared>,
    strategy: Arc<OwnStrategy>,
    keys: LocatedKeys,
    limits: LimitSet,
    op: Op,
    cost: u64,
    recourse: Recourse,
}

impl PendingDecision {
    pub(super) fn new<'d>(
        worker: &LocalWorker,
        locator: &mut Locator<'_, 'd>,
        decision: &Decision<'d>,
        recourse: Recourse,
    ) -> Self {
        Self {
            keys: locator.keys_of(decision),
            node: Arc::clone(&worker.node),
            strategy: worker.strategies.of(decision.strategy),
            limits: decision.limit_set(),
            op: decision.op,
            cost: decision.costs.first().copied().unwrap_or_default(),
            recourse,
        }
    }

    /// Learns from the store's answer, or replaces it. In place: an answer is large.
    pub(super) fn after(&self, answer: &mut Result<Verdicts, StoreError>) {
        if matches!(self.recourse, Recourse::Forgets | Recourse::GivesBack) {
            // After an error too: it may have been executed.
            self.keys.digests().iter().for_each(|&digest| self.node.0.known.forget(digest));
        }
        match answer {
            Ok(verdicts) => {
                if matches!(self.recourse, Recourse::Learns | Recourse::Decides) {
                    self.learn(verdicts);
                }
            }
            Err(error) if self.recourse.decides() && !error.is_callers() => {
                *answer = self.decide(error.clone());
            }
            Err(_) => {}
        }
    }

    fn learn(&self, verdicts: &Verdicts) {
        let (Some(local), Some((verdict, limits))) = (self.strategy.local(), verdicts.get(0)) else { return };
        // Of a debit that was made before, the answer has what it charged then.
        if self.op == Op::Force && !verdict.applied {
            return;
        }
        let (known_as, now) = (local.known_as().number(), self.node.now());
        let meant = self.strategy.algorithms().iter().enumerate();
        let meant = meant.filter(|(index, _)| self.limits.has(*index)).map(|(_, algorithm)| algorithm);
        for ((algorithm, one), &digest) in meant.zip(limits).zip(self.keys.digests()) {
            let used = self.used_after(algorithm, verdict, one);
            if used == 0 {
                self.node.0.known.forget(digest);
                continue;
            }
            let until = now.saturating_add(one.reset_after.0);
            self.node.0.known.learn(digest, Use { known_as, used, until });
        }
    }

    /// The units that are used after the decision.
    fn used_after(&self, algorithm: &Algorithm, verdict: &Verdict, one: &LimitVerdict) -> u64 {
        let charged = match self.op {
            Op::Peek => 0,
            Op::Force => algorithm.debited(one.level_before, self.cost),
            // A limit in shadow mode is charged only where it fits.
            _ if verdict.allowed && verdict.applied && one.fits() => verdict.granted,
            Op::Charge if algorithm.counts_denied() && !verdict.allowed => self.cost,
            _ => 0,
        };
        one.used_before(algorithm).saturating_add(charged)
    }

    /// Decides on the node's own states. Each limit begins where the store last stood, as far as that is known.
    fn decide(&self, error: StoreError) -> Result<Verdicts, StoreError> {
        let (Some(local), FailurePolicy::Local(policy)) =
            (self.strategy.local(), self.strategy.on_store_failure())
        else {
            return Err(error);
        };
        let LocalShared(states) = &*self.node;
        let (strategy, known_as, now) = (&**local.strategy(), local.known_as().number(), self.node.now());
        let decision = LocatedDecision { strategy, limits: self.limits, op: self.op, cost: self.cost };
        let most: SmallVec<[u64; 2]> = decision.algorithms().map(|algorithm| algorithm.limit()).collect();
        let mut taken: SmallVec<[(u128, Use); 2]> = SmallVec::new();
        let least_used = |index: usize| {
            let digest = *self.keys.digests().get(index)?;
            let known = states.known.take(digest, known_as, now)?;
            taken.push((digest, known));
            Some(policy.share.of_used(known.used).min(most.get(index).copied()?))
        };
        match self.node.memory().decide_located(&self.keys, decision, least_used) {
            Ok(verdicts) => {
                states.decided.fetch_add(1, Relaxed);
                Ok(Verdicts { local: Some(error), ..verdicts })
            }
            Err(full) => {
                // Nothing of it was charged, or not all.
                taken.into_iter().for_each(|(digest, known)| states.known.learn_again(digest, known));
                Err(if matches!(full, StoreError::Full(_)) {
                    StoreError::LocalFull(states.budget)
                } else {
                    full
                })
            }
        }
    }
}
