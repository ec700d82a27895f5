//! Units of one limit in open holds, by the time at which they end.

use smallvec::SmallVec;

/// Longest time by which parts and the end of a hold may lie ahead of the clock.
pub(super) const MOST_AHEAD: u64 = 2 * 3600 * 1_000_000;

/// The largest number of different ends of one limit's parts.
pub const MAX_ENDS: usize = 64;

/// The parts of one limit and key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldParts {
    /// A random number of 52 bits, drawn when the first part was made. A record with another one is about parts that are
    /// gone.
    pub mark: u64,
    /// The latest time at which they were written.
    pub seen: u64,
    /// Ends and units, by end.
    pub ends: SmallVec<[(u64, u64); 2]>,
}

impl HeldParts {
    /// True if its time may be believed at `now`.
    pub(super) const fn is_known(&self, now: u64) -> bool {
        self.seen <= now.saturating_add(MOST_AHEAD)
    }

    pub(super) fn live(mut self, at: u64) -> Self {
        self.ends.retain(|(end, units)| *end > at && *units > 0);
        self
    }

    /// All units.
    pub fn units(&self) -> u64 {
        self.ends.iter().map(|(_, units)| units).sum()
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        if self.ends.spilled() { self.ends.capacity() * size_of::<(u64, u64)>() } else { 0 }
    }

    /// The last end, if there is a part.
    pub fn last_end(&self) -> Option<u64> {
        self.ends.last().map(|(end, _)| *end)
    }

    pub(super) fn add(&mut self, end: u64, units: u64) {
        match self.ends.binary_search_by_key(&end, |(end, _)| *end) {
            Ok(found) => self.ends[found].1 += units,
            Err(place) => self.ends.insert(place, (end, units)),
        }
    }

    /// Takes out units that end at `end`; false if they are not there.
    pub(super) fn take(&mut self, end: u64, units: u64) -> bool {
        let Ok(found) = self.ends.binary_search_by_key(&end, |(end, _)| *end) else { return false };
        let Some(left) = self.ends[found].1.checked_sub(units) else { return false };
        if left == 0 {
            self.ends.remove(found);
        } else {
            self.ends[found].1 = left;
        }
        true
    }

    /// The earliest time from `now` on at which nothing is missing. `missing` of the units that are held then is the level
    /// that does not fit. `used` drains as `wait` says; what is held does not, so an end counts only if the rest of what is
    /// missing is used.
    pub(super) fn wait(
        &self,
        missing: impl Fn(u64) -> u64,
        (used, now): (u64, u64),
        wait: impl Fn(u64) -> u64,
    ) -> u64 {
        let mut held = self.units();
        let mut shortest = u64::MAX;
        let ends = self.ends.iter().map(|(end, units)| (end.saturating_sub(now), *units));
        for (after, freed) in std::iter::once((0, 0)).chain(ends) {
            held -= freed;
            let missing = missing(held);
            if missing <= used {
                let drained = if missing == 0 { 0 } else { wait(missing) };
                shortest = shortest.min(after.max(drained));
            }
        }
        shortest
    }
}
