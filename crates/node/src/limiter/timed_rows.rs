//! Decisions of a round by row: their time is that of the round, which is known when it ends.

use std::time::Duration;

use smallvec::SmallVec;

use super::same_outcomes::SameOutcomes;
use crate::telemetry::{Recorder, TotalsRow};

/// Rows with their numbers of decisions. Most rounds have one.
#[derive(Default)]
pub(super) struct TimedRows(SmallVec<[(TotalsRow, u64); 4]>);

impl TimedRows {
    /// Counts a run that ends, and notes its decisions.
    pub(super) fn end(&mut self, run: SameOutcomes, recorder: &Recorder) {
        let SameOutcomes { row, outcome, count, cost } = run;
        recorder.ended(row, outcome, count, cost);
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|(timed, _)| *timed == row) {
            Some((_, decisions)) => *decisions += count,
            None => self.0.push((row, count)),
        }
    }

    /// Counts the time of all, which is `took` for each.
    pub(super) fn record(&self, took: Duration, recorder: &Recorder) {
        self.0.iter().for_each(|&(row, decisions)| recorder.strategy_took(row, took, decisions));
    }
}
