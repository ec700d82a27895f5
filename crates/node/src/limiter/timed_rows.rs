//! Decisions of a round by row: their time is that of the round, which is known when it ends.

use std::time::Duration;

use super::same_outcomes::SameOutcomes;
use crate::telemetry::{Recorder, TotalsRow};

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
