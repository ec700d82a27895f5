//! One decision on its way: what its answer teaches, and what the node decides if there is none.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;
use weir_core::algorithm::{Algorithm, LimitVerdict, Op, Verdict};
use weir_core::strategy::FailurePolicy;

use super::LocalStates;
use super::known::{KnownKey, Use};
use super::own_strategies::{OwnStrategies, OwnStrategy};
use crate::memory::{LocatedDecision, LocatedKeys, Locator};
use crate::{Decision, LimitSet, StoreError, Verdicts};

/// Relation of an operation to the node's own states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recourse {
    None,
    /// The answer teaches what was used. Without one it is an error: it has an id, or is due later.
    Learns,
    /// The answer teaches what was used. Without one the node decides.
    Decides,
    /// The operation changes the store in ways that are not known: what is known is forgotten.
    Forgets,
    /// Like [`Self::Forgets`]; without an answer the node gives back by itself.
    GivesBack,
}

impl Recourse {
    pub(super) fn new(decision: &Decision<'_>) -> Self {
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
    strategy: Arc<OwnStrategy>,
    keys: LocatedKeys,
    limits: LimitSet,
    op: Op,
    cost: u64,
    recourse: Recourse,
}

impl PendingDecision {
    pub(super) fn new<'d>(
        strategies: &OwnStrategies,
        locator: &mut Locator<'_, 'd>,
        decision: &Decision<'d>,
        recourse: Recourse,
    ) -> Self {
        Self {
            keys: locator.keys_of(decision),
            strategy: strategies.of(decision.strategy),
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
            self.forget();
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

    fn states(&self) -> &LocalStates {
        &self.strategy.node.0
    }

    fn forget(&self) {
        let Some(local) = self.strategy.local() else { return };
        let known = &self.states().known;
        self.keys.digests().iter().for_each(|&digest| known.forget(KnownKey::new(digest, local.known_as())));
    }

    fn learn(&self, verdicts: &Verdicts) {
        let (Some(local), Some((verdict, limits))) = (self.strategy.local(), verdicts.get(0)) else { return };
        // Of a debit that was made before, the answer has what it charged then.
        if self.op == Op::Force && !verdict.applied {
            return;
        }
        let (states, now) = (self.states(), self.strategy.node.now());
        let meant = self.strategy.algorithms().iter().enumerate();
        let meant = meant.filter(|(index, _)| self.limits.has(*index)).map(|(_, algorithm)| algorithm);
        for ((algorithm, one), &digest) in meant.zip(limits).zip(self.keys.digests()) {
            let (key, used) =
                (KnownKey::new(digest, local.known_as()), self.used_after(algorithm, verdict, one));
            if used == 0 {
                states.known.forget(key);
                continue;
            }
            states.known.learn(key, Use { used, until: now.saturating_add(one.reset_after.0) });
        }
    }

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
        let (states, now) = (self.states(), self.strategy.node.now());
        let strategy = &**local.strategy();
        let decision = LocatedDecision { strategy, limits: self.limits, op: self.op, cost: self.cost };
        let most: SmallVec<[u64; 2]> = decision.algorithms().map(|algorithm| algorithm.limit()).collect();
        let mut taken: SmallVec<[(KnownKey, Use); 2]> = SmallVec::new();
        let least_used = |index: usize| {
            let key = KnownKey::new(*self.keys.digests().get(index)?, local.known_as());
            let known = states.known.take(key, now)?;
            taken.push((key, known));
            Some(policy.share.of_used(known.used).min(most.get(index).copied()?))
        };
        match self.strategy.node.memory().decide_located(&self.keys, decision, least_used) {
            Ok(verdicts) => {
                states.decided.fetch_add(1, Relaxed);
                Ok(Verdicts { local: Some(error), ..verdicts })
            }
            Err(full) => {
                // Nothing of it was charged, or not all.
                taken.into_iter().for_each(|(key, known)| states.known.learn_again(key, known));
                Err(if matches!(full, StoreError::Full(_)) {
                    StoreError::LocalFull(states.budget)
                } else {
                    full
                })
            }
        }
    }
}
