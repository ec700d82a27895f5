//! The answer over limits with their own costs.

use smallvec::SmallVec;
use weir_units::{Micros, Retry};

use super::SettleOutcome;
use crate::algorithm::{Cause, LimitVerdict};

/// The answer to a question, a settlement or a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetVerdict {
    /// The store's time, to which every wait is relative.
    pub now: Micros,
    /// True if the call may go ahead.
    pub allowed: bool,
    /// True if the cost fitted, also into limits in shadow mode.
    pub fitted: bool,
    /// True if this call made the change.
    pub applied: bool,
    /// Time for which the call must wait before it starts.
    pub wait: Micros,
    /// Time for which the hold lasts from now, while it is open.
    pub held_for: Option<Micros>,
    /// Outcome of a settlement.
    pub outcome: Option<SettleOutcome>,
    /// The longest wait of the enforced limits that deny.
    pub retry: Retry,
    /// The time until all enforced limits are full again.
    pub reset_after: Micros,
    /// Each limit.
    pub limits: SmallVec<[BudgetLimitVerdict; 4]>,
}

/// The answer of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimitVerdict {
    /// Reason that it would not let the call pass.
    pub cause: Option<Cause>,
    /// The units that were asked of it.
    pub cost: u64,
    /// The units that it granted, now or when the call was first decided.
    pub granted: Option<u64>,
    /// The units that a debit or settlement charged to it.
    pub charged: Option<u64>,
    /// The units that it should have charged beside those, and could not because of `max_debt`.
    pub uncharged: u64,
    /// The largest cost that would pass now.
    pub remaining: u64,
    /// The time until the call fits.
    pub retry: Retry,
    /// The time until it is full again.
    pub reset_after: Micros,
    /// The units in open holds.
    pub held: u64,
    /// True if use and holds are at or above `near_limit`; `None` without one.
    pub near: Option<bool>,
    /// True if this call took the use over `near_limit`.
    pub crossed_near: bool,
    /// The level that was found.
    pub level_before: u64,
}

impl BudgetLimitVerdict {
    /// Returns the verdict without costs.
    pub const fn plain(&self) -> LimitVerdict {
        let Self { cause, remaining, retry, reset_after, level_before, .. } = *self;
        LimitVerdict { cause, remaining, retry, reset_after, level_before }
    }
}
