//! Consecutive decisions that are counted together.

use std::time::Duration;

use crate::telemetry::{CountedOutcome, Recorder, TotalsRow};

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

/// The runs that ended before the last one of a round, which is the only one of most rounds: rows with their numbers of
/// decisions.
#[derive(Default)]
pub(super) struct TimedRows(Vec<(TotalsRow, u64)>);

impl TimedRows {
    /// Counts a run that another one follows, and notes its decisions.
    #[cold]
    pub(super) fn end(&mut self, run: SameOutcomes, recorder: &Recorder) {
        let SameOutcomes { row, outcome, count, cost } = run;
        recorder.ended(row, outcome, count, cost);
        match self.0.iter_mut().find(|(timed, _)| *timed == row) {
            Some((_, decisions)) => *decisions += count,
            None => self.0.push((row, count)),
        }
    }

    #[inline(always)]
    pub(super) fn record(&self, last: SameOutcomes, took: Duration, recorder: &Recorder) {
        let SameOutcomes { row, outcome, count, cost } = last;
        recorder.ended(row, outcome, count, cost);
        recorder.strategy_took(row, took, count);
        self.0.iter().for_each(|&(row, decisions)| recorder.strategy_took(row, took, decisions));
    }
}
