//! What a store answers.

use std::future::Future;
use std::pin::Pin;

use smallvec::SmallVec;

use super::{StoreError, no_verdict};
use weir_core::algorithm::{LimitVerdict, Verdict, VerdictSink};

/// The answers to several decisions, in their order. Those to one need no allocation.
#[derive(Default)]
pub struct Answers {
    /// For each decision one answer per cost, or one that comes later for all its costs.
    pub each: SmallVec<[StoreAnswer; 1]>,
    /// For each answer that is a verdict one per limit that it is about, in the order of the strategy.
    pub limits: SmallVec<[LimitVerdict; 2]>,
}

/// One answer of a store.
pub enum StoreAnswer {
    /// It is there.
    Ready(Result<Verdict, StoreError>),
    /// It must be waited for. The store asks when this is first polled; dropped before that, it asks nothing.
    Later(LaterVerdicts),
    /// Only [`Store::known`](super::Store::known) answers so: the store would have to ask.
    Unknown,
}

/// The verdicts over all costs of one decision, when they are there. It belongs to that decision alone, so a caller
/// that gives up ends only its own.
pub type LaterVerdicts = Pin<Box<dyn Future<Output = Result<Verdicts, StoreError>> + Send>>;

/// The answers to the costs of one decision, in their order. Small ones need no allocation.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    /// One per cost.
    pub decisions: SmallVec<[Verdict; 1]>,
    /// For each cost one per limit that it is about, in the order of the strategy.
    pub limits: SmallVec<[LimitVerdict; 2]>,
}

/// What a store has answered to one decision.
pub enum DecisionAnswer {
    /// Verdicts, or why there are none.
    Now(Result<Verdicts, StoreError>),
    /// They come later.
    Later(LaterVerdicts),
}

impl Answers {
    /// Forgets all answers, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.each.clear();
        self.limits.clear();
    }

    /// Appends the same error for each of `costs` costs.
    pub fn fail(&mut self, costs: usize, error: &StoreError) {
        self.each.extend((0..costs).map(|_| StoreAnswer::Ready(Err(error.clone()))));
    }

    /// Appends an answer that comes later.
    pub fn later(&mut self, verdicts: impl Future<Output = Result<Verdicts, StoreError>> + Send + 'static) {
        self.each.push(StoreAnswer::Later(Box::pin(verdicts)));
    }

    /// Appends the answer to a decision of `costs` costs.
    pub fn put(&mut self, costs: usize, decided: DecisionAnswer) {
        match decided {
            DecisionAnswer::Later(verdicts) => self.each.push(StoreAnswer::Later(verdicts)),
            DecisionAnswer::Now(Ok(verdicts)) => {
                self.each
                    .extend(verdicts.decisions.into_iter().map(|verdict| StoreAnswer::Ready(Ok(verdict))));
                self.limits.extend_from_slice(&verdicts.limits);
            }
            DecisionAnswer::Now(Err(error)) => self.fail(costs, &error),
        }
    }

    /// How many answers and limits there are, for [`Answers::take_from`].
    pub(crate) fn end(&self) -> (usize, usize) {
        (self.each.len(), self.limits.len())
    }

    /// Takes the answer to the one decision that was appended since `end`.
    pub(crate) fn take_from(&mut self, (each, limits): (usize, usize)) -> DecisionAnswer {
        if let Some(StoreAnswer::Later(_)) = self.each.last()
            && let Some(StoreAnswer::Later(verdicts)) = self.each.pop()
        {
            return DecisionAnswer::Later(verdicts);
        }
        let mut verdicts = Verdicts::default();
        verdicts.limits.extend(self.limits.drain(limits.min(self.limits.len())..));
        for answer in self.each.drain(each.min(self.each.len())..) {
            match answer {
                StoreAnswer::Ready(Ok(verdict)) => verdicts.decisions.push(verdict),
                StoreAnswer::Ready(Err(error)) => return DecisionAnswer::Now(Err(error)),
                StoreAnswer::Later(_) | StoreAnswer::Unknown => {
                    return DecisionAnswer::Now(Err(no_verdict()));
                }
            }
        }
        DecisionAnswer::Now(Ok(verdicts))
    }
}

impl DecisionAnswer {
    /// The verdicts, waited for if need be.
    pub async fn verdicts(self) -> Result<Verdicts, StoreError> {
        match self {
            Self::Now(verdicts) => verdicts,
            Self::Later(verdicts) => verdicts.await,
        }
    }
}

impl VerdictSink for Answers {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.limits.push(verdict);
    }

    fn all(&mut self, verdict: Verdict) {
        self.each.push(StoreAnswer::Ready(Ok(verdict)));
    }
}

impl VerdictSink for Verdicts {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.limits.push(verdict);
    }

    fn all(&mut self, verdict: Verdict) {
        self.decisions.push(verdict);
    }
}

impl Verdicts {
    /// Decision number `index` with what its limits say.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(&Verdict, &[LimitVerdict])> {
        let per_decision = self.limits.len() / self.decisions.len().max(1);
        let limits = self.limits.get(index * per_decision..(index + 1) * per_decision)?;
        Some((self.decisions.get(index)?, limits))
    }
}
