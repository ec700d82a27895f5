//! Counts of configurations that are gone.
//!
//! A reload gives the workers new rows. The old ones are added up here once no call uses them any more.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use super::denials::{self, DenialLayout, DenialSums};
use super::names::{CountedPattern, CounterNames};
use super::outcome::CountedOutcome;
use super::recorder::{CountedLease, Recorder};
use super::strategy_latency::StrategyTimeSums;
use super::totals::CountedTotal;

/// Removed shadows whose counters are still shown.
const MAX_SHADOWS: usize = 1_000;

/// Outcomes of the renewals and the releases of one strategy's leases.
pub(super) type LeaseSums = [[u64; CountedLease::ALL.len()]; 2];

pub(super) type ShadowSums = [u64; CountedOutcome::ALL.len()];

/// Sums of rows that nobody writes to any more, by the numbers of their names.
#[derive(Debug, Default)]
pub(super) struct PastCounts {
    totals: BTreeMap<(u32, CountedPattern, u8), (u64, u64)>,
    pub(super) leases: BTreeMap<u32, LeaseSums>,
    pub(super) shadows: BTreeMap<[String; 2], ShadowSums>,
    pub(super) denials: DenialSums,
    pub(super) times: StrategyTimeSums,
}

impl PastCounts {
    /// Adds everything that `recorder` has counted in its rows.
    pub(super) fn add(&mut self, recorder: &Recorder) {
        recorder.totals.each(|one| {
            let sums = self.totals.entry((one.strategy, one.pattern, one.outcome as u8)).or_default();
            sums.0 = sums.0.wrapping_add(one.calls);
            sums.1 = sums.1.wrapping_add(one.cost);
        });
        add_leases(&mut self.leases, recorder);
        add_shadows(&mut self.shadows, recorder);
        recorder.add_denials(&mut self.denials);
        recorder.add_times(&mut self.times);
    }

    /// Drops the counts of names that are not shown any more. `configured` are the limits that are.
    pub(super) fn retain(&mut self, names: &CounterNames, configured: &DenialLayout) {
        denials::retain(&mut self.denials, configured, names);
        self.totals.retain(|(strategy, pattern, _), _| names.show(*strategy, *pattern));
        self.times.retain(|strategy, _| names.strategy(*strategy).is_some());
        self.leases.retain(|strategy, _| names.strategy(*strategy).is_some());
        while self.shadows.len() > MAX_SHADOWS {
            self.shadows.pop_first();
        }
    }

    pub(super) fn each(&self, mut each: impl FnMut(CountedTotal)) {
        for (&(strategy, pattern, outcome), &(calls, cost)) in &self.totals {
            let Some(&outcome) = CountedOutcome::ALL.get(usize::from(outcome)) else { continue };
            each(CountedTotal { strategy, pattern, outcome, calls, cost });
        }
    }
}

/// Adds the renewals and releases of a recorder, by the numbers of the strategies.
pub(super) fn add_leases(sums: &mut BTreeMap<u32, LeaseSums>, recorder: &Recorder) {
    for (strategy, counts) in recorder.leases() {
        let sums = sums.entry(strategy).or_default();
        for (sums, counts) in sums.iter_mut().zip(&counts.0) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count.load(Relaxed);
            }
        }
    }
}

/// Adds the outcomes of a recorder's shadows, by their names.
pub(super) fn add_shadows(sums: &mut BTreeMap<[String; 2], ShadowSums>, recorder: &Recorder) {
    for (names, counts) in recorder.shadows() {
        let sums = sums.entry(names.clone()).or_default();
        for (sum, count) in sums.iter_mut().zip(&counts.outcomes) {
            *sum += count.load(Relaxed);
        }
    }
}
