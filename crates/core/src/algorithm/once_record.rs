//! The record of a decision that was made under an id: what [`decide_once`](super::decide_once) keeps beside the states.

use super::{MAX_LIMITS, Op, Verdict};
use weir_units::Micros;

/// Time for which a decision is remembered from the start of its call on.
pub const RECORD_LASTS: Micros = Micros::from_secs(60);

/// Time for which a forced debit is remembered.
pub const DEBIT_LASTS: Micros = Micros::from_secs(24 * 3600);

/// Record of a decision that was made under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnceRecord {
    /// Requested cost.
    pub cost: u64,
    /// Charged cost.
    pub granted: u64,
    /// True if the cost fitted.
    pub fitted: bool,
    /// Time at which the call starts.
    pub start: u64,
    /// Time for which it had to wait then.
    pub wait: u64,
    /// Time at which the record expires.
    pub until: u64,
    /// Details by kind of decision.
    pub detail: OnceDetail,
}

/// Details of one kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceDetail {
    /// None: a charge.
    None,
    /// A reservation.
    Reserved {
        /// The level after it, or the number of its held start.
        level: u64,
        /// Time at which `level` was true.
        at: u64,
        /// The limit's parameters then.
        numbers: [u64; 4],
    },
    /// A forced debit's: the units charged to each limit.
    Debited([u64; MAX_LIMITS]),
    /// The reservation was cancelled: its id is free, and a repeated cancellation is told so.
    Cancelled,
}

impl OnceRecord {
    pub(super) fn new(verdict: &Verdict, op: Op, cost: u64, now: Micros) -> Self {
        let start = now.0.saturating_add(verdict.wait.0);
        let until = match op {
            Op::Force => now.0 + DEBIT_LASTS.0,
            _ => start + RECORD_LASTS.0,
        };
        let Verdict { fitted, granted, wait, .. } = *verdict;
        Self { cost, granted, fitted, start, wait: wait.0, until, detail: OnceDetail::None }
    }

    /// Returns the time for which the call still has to wait.
    pub fn wait_left(&self, now: Micros) -> Micros {
        Micros(self.start.saturating_sub(now.0).min(self.wait))
    }
}
