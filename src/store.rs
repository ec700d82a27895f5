//! Where state lives: one seam, two engines.

pub mod coalesce;
pub mod denials;
pub mod memory;
mod part;
mod patience;
pub mod redis;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use self::part::check_supported;
pub use self::part::{LimitSet, Part, REFUND_ID_LASTS};
use crate::algorithm::{LimitVerdict, Op, Verdict};
use crate::key::{self, Subject};
use crate::strategy::{Limit, Strategy};

/// What is to be decided.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// The limits.
    pub strategy: &'a Arc<Strategy>,
    /// Whose state.
    pub subject: Subject<'a>,
    /// When the caller stops waiting. A store that waits answers by then, or by its own deadline if
    /// that is earlier.
    pub deadline: Option<Instant>,
    /// Which of the limits, where not all are meant.
    pub part: Part<'a>,
}

/// For each limit of a decision its key's phase, 0 where its windows are not spread; empty where none is.
pub(crate) type Phases = SmallVec<[u64; 1]>;

impl Decision<'_> {
    /// The phases of the keys; a name is built only where a limit is spread.
    pub(crate) fn phases(&self) -> Phases {
        if !self.limits().any(|limit| limit.algorithm.is_spread()) {
            return Phases::new();
        }
        let phase = |limit: &Limit| {
            if !limit.algorithm.is_spread() {
                return 0;
            }
            let mut name = Vec::new();
            key::write_name(&mut name, self.strategy, limit, &self.subject);
            key::phase(&name)
        };
        self.limits().map(phase).collect()
    }
}

/// Where state lives. One call answers one or more costs for the same keys, in order; each answer is
/// one atomic decision over all limits of its tag.
pub trait Store: Send + Sync + 'static {
    /// Whether [`Store::decide`] never waits: what it returns is ready when it is first polled.
    const AT_ONCE: bool = false;

    /// Decides each of `costs` in turn and appends its verdict to `out`.
    ///
    /// On an error nothing is known to be charged: either nothing was, or (after
    /// [`StoreError::Timeout`]) the charge may have happened once and its answer was lost.
    fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Why a store could not decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No answer within the deadline.
    #[error("the store did not answer in time")]
    Timeout,
    /// No connection to the node that holds the keys.
    #[error("the store cannot be reached: {0}")]
    Unavailable(Arc<str>),
    /// Too many decisions wait already.
    #[error("{0} decisions wait for the store already")]
    Overloaded(usize),
    /// The memory budget is used up and nothing may be dropped.
    #[error("the memory store is full: its budget of {0} bytes is used by keys that still count")]
    Full(usize),
    /// The key holds something that is not this limit's state.
    #[error("the stored state cannot be read: {0}")]
    Unreadable(Arc<str>),
    /// The store answered with an error.
    #[error("the store refused: {0}")]
    Refused(Arc<str>),
    /// The operation is not defined for these limits.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl StoreError {
    /// The kind of error, as a metric label.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unavailable(_) => "unavailable",
            Self::Overloaded(_) => "overloaded",
            Self::Full(_) => "full",
            Self::Unreadable(_) => "unreadable",
            Self::Refused(_) => "refused",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// Every kind there is.
    pub const KINDS: [&'static str; 7] =
        ["timeout", "unavailable", "overloaded", "full", "unreadable", "refused", "unsupported"];
}

/// The answers of one call, in the order of its costs. Small ones need no allocation.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    /// One per cost.
    pub decisions: SmallVec<[Verdict; 1]>,
    /// For each decision one per limit that it is about, in the order of the strategy.
    pub limits: SmallVec<[LimitVerdict; 2]>,
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
