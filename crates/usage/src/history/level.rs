//! One resolution of the history: closed slots, packed, and the open one.

use std::collections::{BTreeSet, VecDeque};

use prost::encoding::{decode_varint, encode_varint};

use super::series::SeriesId;

/// Entry of a slot: the series, its calls and their cost.
pub(super) type SlotEntry = (SeriesId, u64, u64);

/// The slots of one width.
pub(super) struct UsageLevel {
    /// Seconds of a slot.
    pub(super) width: u64,
    /// Number of slots kept.
    keep: u64,
    /// Closed slots with their packed entries; empty ones are left out.
    closed: VecDeque<(u64, Box<[u8]>)>,
    /// Slots before this one were dropped.
    pub(super) complete_from: u64,
    /// The number of the open slot: its time divided by the width.
    open: u64,
    /// Sums of the slot by series, and the series that have any.
    sums: Vec<(u64, u64)>,
    counted: Vec<SeriesId>,
    /// Bytes of closed slots.
    pub(super) bytes: usize,
    /// Slots that changed since they were sent to other nodes: the last few.
    changed: BTreeSet<u64>,
    keep_changed: usize,
}

/// Bytes of a slot besides its packed entries.
const SLOT_BYTES: usize = 32;

impl UsageLevel {
    pub(super) fn new(width: u64, keep: u64, keep_changed: usize, now: u64) -> Self {
        let open = now / width;
        Self {
            width,
            keep,
            closed: VecDeque::new(),
            complete_from: open.saturating_sub(keep),
            open,
            sums: Vec::new(),
            counted: Vec::new(),
            bytes: 0,
            changed: BTreeSet::new(),
            keep_changed,
        }
    }

    /// Adds an entry to the slot of `second`, or to the open one if that is later.
    pub(super) fn add(&mut self, second: u64, (id, calls, cost): SlotEntry) {
        self.open_at(second);
        self.changed.insert(self.open);
        let place = usize::from(id);
        if self.sums.len() <= place {
            self.sums.resize(place + 1, (0, 0));
        }
        if let Some(sum) = self.sums.get_mut(place) {
            if *sum == (0, 0) {
                self.counted.push(id);
            }
            *sum = (sum.0.saturating_add(calls), sum.1.wrapping_add(cost));
        }
    }

    /// Closes slots before `second`, and drops those that are too old.
    pub(super) fn open_at(&mut self, second: u64) {
        let slot = second / self.width;
        if slot <= self.open {
            return;
        }
        if !self.counted.is_empty() {
            let packed = pack(&self.entries());
            self.bytes += packed.len() + SLOT_BYTES;
            self.closed.push_back((self.open, packed));
            for id in self.counted.drain(..) {
                if let Some(sum) = self.sums.get_mut(usize::from(id)) {
                    *sum = (0, 0);
                }
            }
        }
        self.open = slot;
        self.complete_from = self.complete_from.max(slot.saturating_sub(self.keep));
        while self.closed.front().is_some_and(|(first, _)| *first < self.complete_from) {
            self.drop_oldest();
        }
    }

    /// Slots that changed since they were [`UsageLevel::written`], oldest first.
    pub(super) fn changed(&self) -> impl Iterator<Item = u64> {
        self.changed.iter().copied()
    }

    /// Drops the oldest changed slots beyond the bound.
    pub(super) fn trim_changed(&mut self) {
        while self.changed.len() > self.keep_changed {
            self.changed.pop_first();
        }
    }

    /// Marks all slots as changed.
    pub(super) fn all_changed(&mut self) {
        self.changed.extend(self.closed.iter().map(|(slot, _)| *slot));
        if !self.counted.is_empty() {
            self.changed.insert(self.open);
        }
    }

    /// Marks a slot as sent to other nodes.
    pub(super) fn written(&mut self, slot: u64) {
        self.changed.remove(&slot);
    }

    /// Drops the oldest closed slot, if there is one.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let Some((slot, packed)) = self.closed.pop_front() else { return false };
        self.bytes = self.bytes.saturating_sub(packed.len() + SLOT_BYTES);
        self.complete_from = self.complete_from.max(slot + 1);
        self.changed.remove(&slot);
        true
    }

    /// Reports the entries of slots from `first` to before `end`, oldest first.
    pub(super) fn slots(&self, first: u64, end: u64, mut each: impl FnMut(u64, SlotEntry)) {
        let begin = self.closed.partition_point(|(slot, _)| *slot < first);
        for (slot, packed) in self.closed.iter().skip(begin).take_while(|(slot, _)| *slot < end) {
            unpack(packed, |entry| each(*slot, entry));
        }
        if (first..end).contains(&self.open) {
            self.entries().into_iter().for_each(|entry| each(self.open, entry));
        }
    }

    fn entries(&self) -> Vec<SlotEntry> {
        let entry = |&id: &SeriesId| self.sums.get(usize::from(id)).map(|&(calls, cost)| (id, calls, cost));
        self.counted.iter().filter_map(entry).collect()
    }
}

fn pack(entries: &[SlotEntry]) -> Box<[u8]> {
    let mut packed = Vec::new();
    for &(id, calls, cost) in entries {
        [u64::from(id), calls, cost].into_iter().for_each(|number| encode_varint(number, &mut packed));
    }
    packed.into()
}

fn unpack(mut packed: &[u8], mut each: impl FnMut(SlotEntry)) {
    let mut next = || decode_varint(&mut packed).ok();
    while let (Some(id), Some(calls), Some(cost)) = (next(), next(), next()) {
        each((SeriesId::try_from(id).unwrap_or(0), calls, cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(level: &UsageLevel, first: u64, end: u64) -> Vec<(u64, SlotEntry)> {
        let mut all = Vec::new();
        level.slots(first, end, |slot, entry| all.push((slot, entry)));
        all
    }

    #[test]
    fn numbers_of_any_size_survive_being_packed() {
        let entries = [(0, 1, 0), (300, u64::MAX, u64::MAX), (5_007, 127, 128), (1, 1 << 53, 16_384)];
        let mut read = Vec::new();
        unpack(&pack(&entries), |entry| read.push(entry));
        assert_eq!(read, entries);
    }

    #[test]
    fn slots_are_kept_for_their_time() {
        let mut level = UsageLevel::new(10, 3, 100, 1_000);
        for second in (1_000..1_100).step_by(5) {
            level.add(second, (1, 2, 3));
        }
        assert_eq!(all(&level, 0, 1_000), [106, 107, 108, 109].map(|slot| (slot, (1, 4, 6))));
        assert_eq!(all(&level, 107, 108), [(107, (1, 4, 6))]);
        level.add(1_000, (2, 0, 1));
        level.add(1_000, (2, 1, 0));
        assert_eq!(all(&level, 109, 110), [(109, (1, 4, 6)), (109, (2, 1, 1))], "a clock that steps back");
        let before = level.bytes;
        assert!(level.drop_oldest() && level.bytes < before);
        assert_eq!(level.complete_from, 107);
        level.open_at(1_000_000);
        assert_eq!((all(&level, 0, 1_000_000), level.bytes), (vec![], 0));
    }
}
