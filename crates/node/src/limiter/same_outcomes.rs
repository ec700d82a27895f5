//! Consecutive decisions that are counted together.

use crate::telemetry::{CountedOutcome, TotalsRow};

/// Consecutive decisions of one row with one outcome, not counted yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SameOutcomes {
    pub(super) row: TotalsRow,
    pub(super) outcome: CountedOutcome,
    pub(super) count: u64,
    pub(super) cost: u64,
}

impl SameOutcomes {
    pub(super) const NONE: Self = Self::new(TotalsRow::FIRST, CountedOutcome::Allowed);

    pub(super) const fn new(row: TotalsRow, outcome: CountedOutcome) -> Self {
        Self { row, outcome, count: 0, cost: 0 }
    }

    /// True if a decision of this row with this outcome continues the run.
    #[inline]
    pub(super) fn is_of(&self, row: TotalsRow, outcome: CountedOutcome) -> bool {
        (self.row, self.outcome) == (row, outcome)
    }

    #[inline]
    pub(super) fn add(&mut self, cost: u64) {
        self.count += 1;
        self.cost = self.cost.wrapping_add(cost);
    }
}
