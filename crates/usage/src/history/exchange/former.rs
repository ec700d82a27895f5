//! Sums of processes that have ended, merged once. Without them each question reads what every process of the last month
//! has written: 300 of them took seconds.
//!
//! A process counts as ended if it has not written for a while. Its sums are read completely, for a resolution, and added
//! up. If it writes again (it was idle), all sums are dropped and merged again, and each question reads it for a day.

use std::collections::{BTreeMap, HashMap};

use crate::history::query::UsageSums;
use crate::history::resolutions::{Resolution, UsageTotal};
use crate::history::series::SeriesName;

/// Seconds without a write after which a process counts as ended.
const ENDED_AFTER: u64 = 120;

/// Time in seconds for which each question reads a process that wrote again.
const REVIVED_FOR: u64 = 86_400;

/// Upper bound of merged sums, of 32 bytes each. Processes beyond it are read by each question.
const MAX_SUMS: usize = 500_000;

/// Upper bound of names of merged series.
const MAX_NAMES: usize = 20_000;

/// The merged sums.
#[derive(Default)]
pub(super) struct FormerSums {
    /// Processes by `NODE:INCARNATION`.
    known: HashMap<String, FormerProcess>,
    names: Vec<SeriesName>,
    numbers: HashMap<SeriesName, u32>,
    /// Sums by slot and number of the series.
    sums: [BTreeMap<(u64, u32), UsageTotal>; 3],
}

#[derive(Default)]
struct FormerProcess {
    /// The second of its last write.
    last: u64,
    /// The resolutions that are merged.
    merged: [bool; 3],
    /// Second at which the process wrote again, after it had been merged.
    revived: Option<u64>,
}

impl FormerSums {
    /// Takes note of all processes, with the seconds of their last writes.
    pub(super) fn see<'m>(&mut self, members: impl Iterator<Item = (&'m str, u64)>, now: u64) {
        let mut known = HashMap::new();
        let mut is_void = false;
        for (member, last) in members {
            let mut process =
                self.known.remove(member).unwrap_or(FormerProcess { last, ..Default::default() });
            if process.last != last {
                if process.merged != [false; 3] {
                    process.revived = Some(last);
                    is_void = true;
                }
                process.last = last;
            }
            process.revived = process.revived.filter(|at| now.saturating_sub(*at) < REVIVED_FOR);
            known.insert(member.to_owned(), process);
        }
        self.known = known;
        if is_void {
            self.known.values_mut().for_each(|process| process.merged = [false; 3]);
            self.sums = Default::default();
        }
        for (sums, resolution) in self.sums.iter_mut().zip(Resolution::ALL) {
            let oldest = (now / resolution.seconds()).saturating_sub(resolution.keep());
            *sums = sums.split_off(&(oldest, 0));
        }
    }

    /// True if the sums of this process are merged.
    pub(super) fn has(&self, member: &str, resolution: Resolution) -> bool {
        self.known.get(member).is_some_and(|process| process.merged[resolution as usize])
    }

    /// True if the process has ended, and may be merged.
    pub(super) fn may_merge(&self, member: &str, now: u64) -> bool {
        let has_ended = |process: &FormerProcess| {
            process.last.saturating_add(ENDED_AFTER) < now && process.revived.is_none()
        };
        self.known.get(member).is_some_and(has_ended)
            && self.names.len() < MAX_NAMES
            && self.sums.iter().map(BTreeMap::len).sum::<usize>() < MAX_SUMS
    }

    /// Adds one slot of a process.
    pub(super) fn add(
        &mut self,
        resolution: Resolution,
        slot: u64,
        name: &SeriesName,
        calls: u64,
        cost: u64,
    ) {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let Ok(number) = u32::try_from(self.names.len()) else { return };
                self.names.push(name.clone());
                self.numbers.insert(name.clone(), number);
                number
            }
        };
        let total = self.sums[resolution as usize].entry((slot, number)).or_default();
        total.calls = total.calls.saturating_add(calls);
        total.cost = total.cost.wrapping_add(cost);
    }

    /// Marks all slots of a process as added.
    pub(super) fn merged(&mut self, member: &str, resolution: Resolution) {
        if let Some(process) = self.known.get_mut(member) {
            process.merged[resolution as usize] = true;
        }
    }

    /// Adds everything that is merged to the sums of a question.
    pub(super) fn add_to(&self, sums: &mut UsageSums) {
        let (from, to, resolution) = (sums.plan.from, sums.plan.to, sums.plan.resolution);
        let width = resolution.seconds();
        for (&(slot, number), total) in
            self.sums[resolution as usize].range((from / width, 0)..(to.div_ceil(width), 0))
        {
            if let Some(name) = self.names.get(number as usize).filter(|_| !sums.is_too_large()) {
                sums.add(name, slot.saturating_mul(width), total.calls, total.cost);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const NOW: u64 = 1_704_067_200;

    fn name() -> SeriesName {
        let (strategy, pattern) = ("s".into(), "p".into());
        SeriesName { strategy, pattern, outcome: "allowed".into(), cost: Arc::default() }
    }

    #[test]
    fn a_process_is_merged_once_it_has_ended_and_again_only_a_day_after_it_wrote() {
        let mut former = FormerSums::default();
        let (last, minute) = (NOW - 100, Resolution::Minute);
        former.see([("a:1-1", last)].into_iter(), NOW);
        assert!(!former.may_merge("a:1-1", NOW), "it may be idle");
        let later = NOW + 100;
        former.see([("a:1-1", last)].into_iter(), later);
        assert!(former.may_merge("a:1-1", later) && !former.has("a:1-1", minute));
        former.add(minute, last / 60, &name(), 5, 7);
        former.merged("a:1-1", minute);
        former.see([("a:1-1", last)].into_iter(), later);
        assert!(former.has("a:1-1", minute) && !former.has("a:1-1", Resolution::Hour));
        // It writes: what was merged may be old.
        former.see([("a:1-1", later)].into_iter(), later + 1);
        assert!(!former.has("a:1-1", minute) && former.sums[1].is_empty());
        former.see([("a:1-1", later)].into_iter(), later + 80_000);
        assert!(!former.may_merge("a:1-1", later + 80_000), "each question reads it for a day");
        former.see([("a:1-1", later)].into_iter(), later + REVIVED_FOR);
        assert!(former.may_merge("a:1-1", later + REVIVED_FOR));
    }

    #[test]
    fn old_slots_and_unknown_processes_go() {
        let mut former = FormerSums::default();
        former.see([("a:1-1", NOW - 1_000)].into_iter(), NOW);
        for back in 0..3 {
            former.add(Resolution::Second, NOW - 1_000 + back, &name(), 1, 1);
        }
        former.merged("a:1-1", Resolution::Second);
        let later = NOW - 999 + Resolution::Second.keep();
        former.see(std::iter::empty(), later);
        assert_eq!(former.sums[0].len(), 2);
        assert!(!former.has("a:1-1", Resolution::Second));
    }
}
