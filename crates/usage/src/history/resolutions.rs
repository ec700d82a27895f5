//! The history of one node, in three resolutions.

use super::level::{SlotEntry, UsageLevel};

/// Byte bound of all closed slots. A slot takes 32 bytes and about 7 for each series counted in it, so this is enough
/// for 1,500 series in every second. Beyond it, the oldest seconds are dropped first, then the oldest minutes.
const MAX_BYTES: usize = 64 << 20;

/// Slots kept beyond the retention, so that a question may take its time.
const SPARE: u64 = 60;

/// Resolution of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Resolution {
    /// The last hour.
    Second,
    /// The last day.
    Minute,
    /// The last 30 days.
    Hour,
}

/// Calls and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageTotal {
    /// Decisions.
    pub(crate) calls: u64,
    /// Sum of the costs.
    pub(crate) cost: u64,
}

/// The history in each resolution, in the order of [`Resolution::ALL`].
pub(super) struct History([UsageLevel; 3]);

impl Resolution {
    /// All resolutions, from the finest to the coarsest.
    pub(super) const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// Seconds of a slot.
    #[must_use]
    pub(crate) const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }

    /// Number of slots kept.
    pub(super) const fn keep(self) -> u64 {
        SPARE
            + match self {
                Self::Second => 3_600,
                Self::Minute => 24 * 60,
                Self::Hour => 30 * 24,
            }
    }

    /// Most changed slots that wait to be sent to other nodes: five minutes of seconds. Minutes and hours are so few
    /// that they wait for longer.
    const fn keep_changed(self) -> usize {
        match self {
            Self::Second => 300,
            Self::Minute => 60,
            Self::Hour => 24,
        }
    }

    /// Retention, as text for people.
    pub(super) const fn kept(self) -> &'static str {
        match self {
            Self::Second => "by second for an hour",
            Self::Minute => "by minute for a day",
            Self::Hour => "by hour for 30 days",
        }
    }
}

impl History {
    pub(super) fn new(now: u64) -> Self {
        Self(Resolution::ALL.map(|one| UsageLevel::new(one.seconds(), one.keep(), one.keep_changed(), now)))
    }

    /// Adds an entry in all resolutions.
    pub(super) fn add(&mut self, second: u64, entry: SlotEntry) {
        self.0.iter_mut().for_each(|level| level.add(second, entry));
    }

    /// Closes slots before `second`, and enforces the byte bound.
    pub(super) fn open_at(&mut self, second: u64) {
        self.0.iter_mut().for_each(|level| level.open_at(second));
        self.shrink(MAX_BYTES);
    }

    fn shrink(&mut self, most: usize) {
        while self.0.iter().map(|level| level.bytes).sum::<usize>() > most {
            if !self.0.iter_mut().any(UsageLevel::drop_oldest) {
                return;
            }
        }
    }

    /// Slots that changed since they were sent to other nodes, at most `most`.
    pub(super) fn changed(&self, most: usize) -> Vec<(Resolution, u64)> {
        // The coarsest first: they are few, and contain the sums of the others.
        let of = |one: Resolution| self.level(one).changed().map(move |slot| (one, slot));
        Resolution::ALL.into_iter().rev().flat_map(of).take(most).collect()
    }

    /// Drops the oldest changed slots beyond the bound of each [`Resolution`].
    pub(super) fn trim_changed(&mut self) {
        self.0.iter_mut().for_each(UsageLevel::trim_changed);
    }

    /// Marks all slots as changed.
    pub(super) fn all_changed(&mut self) {
        self.0.iter_mut().for_each(UsageLevel::all_changed);
    }

    /// Marks slots as sent to other nodes.
    pub(super) fn written(&mut self, slots: &[(Resolution, u64)]) {
        for (level, resolution) in self.0.iter_mut().zip(Resolution::ALL) {
            slots.iter().filter(|(of, _)| *of == resolution).for_each(|(_, slot)| level.written(*slot));
        }
    }

    /// Entries of one slot.
    pub(super) fn slot(&self, resolution: Resolution, slot: u64) -> Vec<SlotEntry> {
        let mut entries = Vec::new();
        self.level(resolution).slots(slot, slot + 1, |_, entry| entries.push(entry));
        entries
    }

    /// The finest resolution whose history covers the time since `from`; else the coarsest.
    pub(super) fn resolution(&self, from: u64) -> Resolution {
        let knows = |one: &&Resolution| {
            let level = self.level(**one);
            level.complete_from <= from / level.width
        };
        Resolution::ALL.iter().find(knows).copied().unwrap_or(Resolution::Hour)
    }

    pub(super) fn level(&self, resolution: Resolution) -> &UsageLevel {
        &self.0[resolution as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_704_067_200;

    fn sum(history: &History, resolution: Resolution) -> u64 {
        let mut sum = 0;
        history.level(resolution).slots(0, u64::MAX, |_, (_, calls, _)| sum += calls);
        sum
    }

    #[test]
    fn each_resolution_lasts_for_its_time() {
        let mut history = History::new(NOW);
        let days = 40 * 86_400;
        for second in (NOW..NOW + days).step_by(20) {
            history.add(second, (0, 1, 1));
        }
        let end = NOW + days;
        for (back, resolution) in [
            (3_600, Resolution::Second),
            (3_700, Resolution::Minute),
            (86_400, Resolution::Minute),
            (93_600, Resolution::Hour),
            (30 * 86_400, Resolution::Hour),
        ] {
            assert_eq!(history.resolution(end - back), resolution, "{back} s ago");
        }
        let kept = |resolution: Resolution| sum(&history, resolution) * 20;
        assert!((3_600..3_700).contains(&kept(Resolution::Second)));
        assert!((86_400..86_400 + 3_700).contains(&kept(Resolution::Minute)));
        assert!((30 * 86_400..33 * 86_400).contains(&kept(Resolution::Hour)));
    }

    #[test]
    fn beyond_the_bound_the_oldest_seconds_are_forgotten_first() {
        let mut history = History::new(NOW);
        for second in NOW..NOW + 600 {
            for id in 0..50 {
                history.add(second, (id, 1, 1));
            }
        }
        let all = 600 * 50;
        history.shrink(20_000);
        assert!(sum(&history, Resolution::Second) < all);
        assert_eq!((sum(&history, Resolution::Minute), sum(&history, Resolution::Hour)), (all, all));
        assert_eq!(history.resolution(NOW), Resolution::Minute);
        assert!(history.0.iter().map(|level| level.bytes).sum::<usize>() <= 20_000);
        history.shrink(0);
        assert!(sum(&history, Resolution::Minute) < all, "only the open minute");
        assert_eq!(sum(&history, Resolution::Hour), all, "it is open");
    }

    #[test]
    fn what_cannot_be_shown_to_other_nodes_waits_for_five_minutes() {
        let mut history = History::new(NOW);
        for second in NOW..NOW + 600 {
            history.add(second, (0, 1, 1));
        }
        history.trim_changed();
        let changed = history.changed(10_000);
        let of = |wanted| changed.iter().filter(move |(one, _)| *one == wanted).map(|(_, slot)| *slot);
        let seconds: Vec<u64> = of(Resolution::Second).collect();
        assert_eq!((seconds.len(), seconds[0], seconds[299]), (300, NOW + 300, NOW + 599));
        assert_eq!((of(Resolution::Minute).count(), of(Resolution::Hour).count()), (10, 1));
        history.written(&changed);
        assert_eq!(history.changed(1), []);
        // Where Redis has lost everything, all of it is shown once more.
        history.all_changed();
        assert_eq!(history.changed(10_000).len(), 600 + 10 + 1);
    }
}
