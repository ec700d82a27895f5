//! The operations on a set of limits, and their verdicts.

use super::Algorithm;
use weir_units::{Micros, Retry};

/// Most limits of a strategy, and so of a decision.
pub const MAX_LIMITS: usize = 8;

/// Operation of a decision on its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Charges every limit, if all of them admit.
    Charge,
    /// Answers as `Charge` would, and charges nothing.
    Peek,
    /// Gives a cost back; never below empty.
    Refund,
    /// Drops the state.
    Reset,
    /// Charges nothing. [`LimitVerdict::level_before`] is the use in the newest parts of a bucketed window. One such
    /// limit only.
    Count {
        /// Number of parts, including the current one.
        parts: u64,
    },
    /// Charges every limit, also above it: work that is already done. The limit is then in debt.
    Force,
    /// Charges every limit as much of the cost as all of them admit, at least 1. Not of limits that count denied
    /// attempts.
    AtMost,
    /// Charges now for a call that waits until its turn, if that is within `max_wait`. One limit only that
    /// [`Algorithm::reserves`].
    Reserve {
        /// The longest acceptable wait.
        max_wait: Micros,
    },
    /// Gives back the part of a reservation that no later one depends on, if its start has not come. One limit only
    /// that [`Algorithm::cancels`].
    Cancel,
}

/// Verdict over all limits of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The store's time, to which every wait is relative.
    pub now: Micros,
    /// True if the call may go ahead (after `wait`).
    pub allowed: bool,
    /// True if the cost fitted into every limit before the charge; differs from `allowed` only for [`Op::Force`].
    pub fitted: bool,
    /// Cost charged or given back: the requested one, or less for [`Op::AtMost`]; for [`Op::Force`] the most that a
    /// limit was charged; 0 when denied, and for a repeated refund. Of [`Op::Cancel`]: 1 if the reservation was
    /// cancelled before, otherwise 0.
    pub granted: u64,
    /// Time for which the caller must wait before it goes ahead: after [`Op::Reserve`], and where a limit paces its calls.
    pub wait: Micros,
    /// True if this call made the change: false for a denial, and if it was made before under the same id. For
    /// [`Op::Cancel`]: true if the reservation existed and had not started.
    pub applied: bool,
}

/// Verdict of one limit within a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitVerdict {
    /// Reason that this limit would deny the call; `None` if it would not. Also set for a limit in shadow mode, which
    /// denies nothing.
    pub cause: Option<Cause>,
    /// The largest cost that would pass now; uncharged when the decision was denied.
    pub remaining: u64,
    /// Time until this cost fits.
    pub retry: Retry,
    /// Time until the limit is full again.
    pub reset_after: Micros,
    /// The level that the decision found, before it charged anything: [`Algorithm::weight`] for each unit. A
    /// denial from a cache has the level of when the store was asked. Of a forced debit that was made before under the
    /// same id: the units that it charged.
    pub level_before: u64,
}

/// Cause of a denial within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The limit is used up. Takes precedence over a gap that is too short.
    Count,
    /// The previous call was too recent.
    MinGap,
    /// The cost is above the limit.
    Never,
}

impl LimitVerdict {
    /// The units of `algorithm` that were used before the decision; more than its limit where it was in debt.
    pub const fn used_before(&self, algorithm: &Algorithm) -> u64 {
        self.level_before.div_ceil(algorithm.weight())
    }

    /// True if this limit alone would let the call pass.
    pub const fn fits(&self) -> bool {
        self.cause.is_none()
    }
}

/// Summary of all limits of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The smallest limit.
    pub limit: u64,
    /// The smallest `remaining`.
    pub remaining: u64,
    /// The longest wait of those that deny.
    pub retry: Retry,
    /// The longest time until a limit is full again.
    pub reset_after: Micros,
}

impl Summary {
    /// Summarizes the enforced ones of `limits`, which correspond to `algorithms` one by one.
    pub fn new(algorithms: &[Algorithm], limits: &[LimitVerdict]) -> Self {
        let start =
            Self { limit: u64::MAX, remaining: u64::MAX, retry: Retry::Now, reset_after: Micros::ZERO };
        let enforced = algorithms.iter().zip(limits).filter(|(algorithm, _)| !algorithm.is_shadow());
        enforced.fold(start, |all, (algorithm, one)| Self {
            limit: all.limit.min(algorithm.limit()),
            remaining: all.remaining.min(one.remaining),
            retry: all.retry.max(one.retry),
            reset_after: all.reset_after.max(one.reset_after),
        })
    }
}
