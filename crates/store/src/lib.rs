//! Where state lives: one seam, two engines.
//!
//! [`Store`] is the seam. [`memory`] keeps states in this process, [`redis`] in a Redis, a Valkey or a cluster of
//! them. [`coalesce`] and [`denials`] stand in front of Redis and save calls to it. [`config`] has the types that
//! they are configured with, [`tls`] the certificates for connections to Redis.
//!
//! A store knows what a decision is from `weir-core`. It does not know which limits apply to a request, how
//! questions arrive, or in which file its configuration is written.

pub mod coalesce;
pub mod config;
pub mod denials;
pub mod memory;
mod part;
pub mod redis;
pub mod tls;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use smallvec::SmallVec;

use self::part::check_supported;
pub use self::part::{LimitSet, Part, REFUND_ID_LASTS};
use weir_core::algorithm::{LimitVerdict, Op, Verdict, VerdictSink};
use weir_core::key::{self, Subject};
use weir_core::strategy::{Limit, Strategy};

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

    /// Whether [`Store::known_each`] is worth being asked.
    fn knows_some(&self) -> bool {
        false
    }

    /// Appends to `out` what [`Store::decide`] would answer to those of `singles` whose answers are known without
    /// waiting and change nothing, and to `known` for each of `singles` whether its answer is.
    fn known_each(&self, singles: &[Single<'_>], known: &mut AreKnown, _out: &mut Ended) {
        known.extend(singles.iter().map(|_| false));
    }

    /// Decides each of `singles` for itself, in order, as [`Store::decide`] would, and appends how it
    /// ended to `out`. Only for stores that answer at once; at most [`TOGETHER`] are worth being asked.
    fn decide_each(&self, singles: &[Single<'_>], out: &mut Ended) {
        for single in singles {
            let mut verdicts = Verdicts::default();
            let decided =
                at_once(self.decide(&single.decision(), single.op(), &[single.cost], &mut verdicts));
            let decided = decided.unwrap_or_else(|| Err(not_at_once()));
            let verdict = decided.and_then(|()| verdicts.decisions.pop().ok_or_else(no_verdict));
            if verdict.is_ok() {
                out.limits.extend_from_slice(&verdicts.limits);
            }
            out.decisions.push(verdict);
        }
    }
}

/// As many decisions as are worth being made together: the memory of so many is fetched at a time.
pub const TOGETHER: usize = 16;

/// One of several decisions, each made for itself: a charge or a peek.
#[derive(Debug, Clone, Copy)]
pub struct Single<'a> {
    /// The limits.
    pub strategy: &'a Arc<Strategy>,
    /// Whose state.
    pub subject: Subject<'a>,
    /// How much is taken.
    pub cost: u64,
    /// Answer as if charged, and charge nothing.
    pub peek: bool,
}

impl<'a> Single<'a> {
    /// The decision. Nobody waits for it, so that it has no deadline.
    #[must_use]
    pub fn decision(&self) -> Decision<'a> {
        Decision { strategy: self.strategy, subject: self.subject, deadline: None, part: Part::ALL }
    }

    /// What it does with its cost.
    #[must_use]
    pub const fn op(&self) -> Op {
        if self.peek { Op::Peek } else { Op::Charge }
    }
}

/// For each of several decisions whether its answer is known.
pub type AreKnown = SmallVec<[bool; TOGETHER]>;

/// How several decisions ended, in their order.
#[derive(Debug, Default)]
pub struct Ended {
    /// One per decision.
    pub decisions: Vec<Result<Verdict, StoreError>>,
    /// For each decision that did not fail one per limit, in the order of its strategy.
    pub limits: Vec<LimitVerdict>,
}

/// What `future` is ready with when it is first polled.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// For a store that says that it answers at once, and does not.
fn not_at_once() -> StoreError {
    StoreError::Refused("it answers at once, and did not".into())
}

/// For a store that answers without a verdict.
#[must_use]
pub fn no_verdict() -> StoreError {
    StoreError::Refused("it answered without a verdict".into())
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

impl VerdictSink for Verdicts {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.limits.push(verdict);
    }

    fn all(&mut self, verdict: Verdict) {
        self.decisions.push(verdict);
    }
}

impl VerdictSink for Ended {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.limits.push(verdict);
    }

    fn all(&mut self, verdict: Verdict) {
        self.decisions.push(Ok(verdict));
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
