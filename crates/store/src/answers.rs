//! Answers of a store.
//!
//! [`Verdicts`] holds the verdicts over the costs of one decision. [`StoreAnswer`] is a store's immediate answer: ready
//! verdicts, or a future of them. [`Answers`] collects the answers to several decisions.

use std::future::Future;
use std::pin::Pin;

use smallvec::SmallVec;

use super::StoreError;
use super::error::no_verdict;
use weir_core::algorithm::budget::{BudgetLimitVerdict, BudgetVerdict, CostedLimits};
use weir_core::algorithm::{LimitVerdict, Verdict, VerdictSink};

/// The verdicts over the costs of one decision, in their order. Small ones need no allocation.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    /// One per cost.
    pub decisions: SmallVec<[Verdict; 1]>,
    /// For each cost, one verdict per limit of the decision, in the order of the strategy.
    pub limits: SmallVec<[LimitVerdict; 2]>,
    /// Error of the store, if the node decided by itself: these are verdicts of the strategy's
    /// [`LocalStrategy`](weir_core::strategy::LocalStrategy).
    pub local: Option<StoreError>,
    /// The verdict over limits with costs of their own, which the others summarize.
    pub budget: Option<Box<BudgetVerdict>>,
}

/// A future of the verdicts over all costs of one decision. No other decision shares it, so a caller that gives up
/// cancels only its own decision.
pub type LaterVerdicts = Pin<Box<dyn Future<Output = Result<Verdicts, StoreError>> + Send>>;

/// A store's immediate answer: to one cost, or with [`Verdicts`] to all costs of a decision.
pub enum StoreAnswer<T = Verdict> {
    /// A verdict or an error, available now.
    Ready(Result<T, StoreError>),
    /// A future of the verdicts. It is lazy: the store sends nothing before the first poll.
    Later(LaterVerdicts),
}

/// The answers to several decisions, in their order. Those to one need no allocation.
#[derive(Default)]
pub struct Answers {
    /// For each decision, one ready answer per cost, or one future for all its costs.
    pub each: SmallVec<[StoreAnswer; 1]>,
    /// For each ready verdict, one per limit of its decision, in the order of the strategy.
    pub limits: SmallVec<[LimitVerdict; 2]>,
}

impl Answers {
    /// Removes all answers, and keeps the allocated memory.
    #[inline]
    pub fn clear(&mut self) {
        self.each.clear();
        self.limits.clear();
    }

    /// Appends the same error for each of `costs` costs.
    pub fn fail(&mut self, costs: usize, error: &StoreError) {
        self.each.extend((0..costs).map(|_| StoreAnswer::Ready(Err(error.clone()))));
    }

    /// Appends a future answer.
    pub fn later(&mut self, verdicts: impl Future<Output = Result<Verdicts, StoreError>> + Send + 'static) {
        self.each.push(StoreAnswer::Later(Box::pin(verdicts)));
    }

    /// Appends the answer to a decision of `costs` costs.
    pub fn put(&mut self, costs: usize, answer: StoreAnswer<Verdicts>) {
        match answer {
            StoreAnswer::Later(verdicts) => self.each.push(StoreAnswer::Later(verdicts)),
            StoreAnswer::Ready(Ok(verdicts)) => {
                self.each
                    .extend(verdicts.decisions.into_iter().map(|verdict| StoreAnswer::Ready(Ok(verdict))));
                self.limits.extend_from_slice(&verdicts.limits);
            }
            StoreAnswer::Ready(Err(error)) => self.fail(costs, &error),
        }
    }

    /// Returns the numbers of answers and of limits, for [`Answers::take_from`] and [`Answers::split_off`].
    pub(crate) fn end(&self) -> (usize, usize) {
        (self.each.len(), self.limits.len())
    }

    /// Takes the answer to the one decision that was appended since `end`.
    pub(crate) fn take_from(&mut self, (each, limits): (usize, usize)) -> StoreAnswer<Verdicts> {
        if let Some(StoreAnswer::Later(_)) = self.each.last()
            && let Some(StoreAnswer::Later(verdicts)) = self.each.pop()
        {
            return StoreAnswer::Later(verdicts);
        }
        let mut verdicts = Verdicts::default();
        verdicts.limits.extend(self.limits.drain(limits.min(self.limits.len())..));
        for answer in self.each.drain(each.min(self.each.len())..) {
            match answer {
                StoreAnswer::Ready(Ok(verdict)) => verdicts.decisions.push(verdict),
                StoreAnswer::Ready(Err(error)) => return StoreAnswer::Ready(Err(error)),
                StoreAnswer::Later(_) => return StoreAnswer::Ready(Err(no_verdict())),
            }
        }
        StoreAnswer::Ready(Ok(verdicts))
    }

    /// Takes all answers that were appended since `end`.
    pub(crate) fn split_off(&mut self, (each, limits): (usize, usize)) -> Self {
        let (each, limits) = (each.min(self.each.len()), limits.min(self.limits.len()));
        Self { each: self.each.drain(each..).collect(), limits: self.limits.drain(limits..).collect() }
    }
}

impl StoreAnswer<Verdicts> {
    /// Returns the verdicts, and awaits them if necessary.
    pub async fn verdicts(self) -> Result<Verdicts, StoreError> {
        match self {
            Self::Ready(verdicts) => verdicts,
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
    /// The verdict over limits with costs of their own, and those that summarize it. Costs by name are of different units,
    /// so their sum is 0.
    pub fn of_costs(costed: &CostedLimits, verdict: BudgetVerdict) -> Self {
        let most = verdict.limits.iter().filter_map(|limit| limit.granted).max();
        let granted = most.filter(|_| verdict.allowed && costed.names.is_empty()).unwrap_or(0);
        let BudgetVerdict { now, allowed, fitted, wait, applied, .. } = verdict;
        Self {
            limits: verdict.limits.iter().map(BudgetLimitVerdict::plain).collect(),
            decisions: [Verdict { now, allowed, fitted, granted, wait, applied }].into(),
            local: None,
            budget: Some(Box::new(verdict)),
        }
    }

    /// Returns the verdict at `index` and those of its limits.
    pub fn get(&self, index: usize) -> Option<(&Verdict, &[LimitVerdict])> {
        let per_decision = self.limits.len() / self.decisions.len().max(1);
        let limits = self.limits.get(index * per_decision..(index + 1) * per_decision)?;
        Some((self.decisions.get(index)?, limits))
    }
}
