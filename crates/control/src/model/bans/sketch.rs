//! Counts denials of many callers in bounded memory, to find those that are to be banned.
//!
//! *Space-saving* (Metwally et al.): a new caller takes the place with the least count, and inherits this count as its
//! error. So a caller with more than its share of all denials has a place, and `count − error` never exceeds its
//! denials.
//!
//! Time is cut into slices, an eighth of `within` each. A denial counts in the slice of its time, and slices that are not
//! wholly within the last `within` do not count: `count − error` never exceeds the denials within the time. In turn a
//! caller is certain to be found only if it has `after` denials within seven eighths of it.

use std::collections::BTreeSet;

use foldhash::HashMap;
use weir_units::Micros;

/// The most callers that are counted at a time.
pub const MAX_COUNTED: usize = 10_000;

const SLICES: usize = 8;

/// Threshold of a ban: the number of denials, and the time within which they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanRule {
    /// Number of denials, at least 1.
    pub after: u32,
    /// Within which time: at least 8 µs.
    pub within: Micros,
}

/// Denials by caller.
#[derive(Debug)]
pub struct DenialSketch {
    most: usize,
    places: HashMap<u128, usize>,
    counters: Vec<Counter>,
    /// Counters by their counts, the least first.
    by_count: BTreeSet<(u64, usize)>,
    /// The next counter to be checked for expiry.
    hand: usize,
}

#[derive(Debug)]
struct Counter {
    key: u128,
    within: u64,
    /// Number of the newest slice, from 1970 on.
    newest: u64,
    /// Denials by the numbers of their slices, modulo [`SLICES`].
    slices: [u32; SLICES],
    error: u64,
    /// The sum of the slices and the error, as `by_count` has it.
    count: u64,
}

impl Default for DenialSketch {
    fn default() -> Self {
        Self::new(MAX_COUNTED)
    }
}

impl DenialSketch {
    /// Creates a sketch of at most `most` callers.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let (places, by_count) = (HashMap::default(), BTreeSet::new());
        Self { most: most.max(1), places, counters: Vec::new(), by_count, hand: 0 }
    }

    /// Counts a denial of a caller at `now`, in µs. `key` is a digest of the limit and the caller. True if the caller is
    /// to be banned; it is counted from 0 again then.
    pub fn count(&mut self, key: u128, rule: BanRule, now: u64) -> bool {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => self.place_for(key, now),
        };
        let Some(counter) = self.counters.get_mut(place) else { return false };
        counter.add(rule.within.0.max(1), now);
        let is_due = counter.certain() >= u64::from(rule.after.max(1));
        if is_due {
            counter.slices = [0; SLICES];
            counter.error = 0;
        }
        self.sort(place);
        is_due
    }

    /// Number of callers that are counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    fn place_for(&mut self, key: u128, now: u64) -> usize {
        let (place, error) = if self.counters.len() < self.most {
            self.counters.push(Counter::new(key, 0));
            self.by_count.insert((0, self.counters.len() - 1));
            (self.counters.len() - 1, 0)
        } else {
            self.free(now)
        };
        if let Some(counter) = self.counters.get_mut(place) {
            self.places.remove(&counter.key);
            let count = counter.count;
            *counter = Counter { count, ..Counter::new(key, error) };
        }
        self.places.insert(key, place);
        place
    }

    /// The place of a counter that has lapsed, or else the one with the least count, which becomes an error.
    fn free(&mut self, now: u64) -> (usize, u64) {
        for _ in 0..2 {
            self.hand = (self.hand + 1) % self.counters.len().max(1);
            if self.counters.get(self.hand).is_some_and(|counter| counter.has_lapsed(now)) {
                return (self.hand, 0);
            }
        }
        self.by_count.first().map_or((0, 0), |(count, place)| (*place, *count))
    }

    fn sort(&mut self, place: usize) {
        let Some(counter) = self.counters.get_mut(place) else { return };
        let before = counter.count;
        counter.count = counter.error + counter.certain();
        if counter.count != before {
            self.by_count.remove(&(before, place));
            self.by_count.insert((counter.count, place));
        }
    }
}

impl Counter {
    const fn new(key: u128, error: u64) -> Self {
        Self { key, within: 0, newest: 0, slices: [0; SLICES], error, count: 0 }
    }

    fn add(&mut self, within: u64, now: u64) {
        let number = now / slice(within);
        // Under another rule, or after a clock that was set back, it begins anew: it must not count too much.
        if self.within != within || number < self.newest {
            (self.within, self.newest, self.slices) = (within, number, [0; SLICES]);
        }
        let passed = number - self.newest;
        if passed >= SLICES as u64 {
            (self.slices, self.error) = ([0; SLICES], 0);
        } else {
            (1..=passed).for_each(|slice| self.slices[((self.newest + slice) % SLICES as u64) as usize] = 0);
        }
        self.newest = number;
        let newest = &mut self.slices[(number % SLICES as u64) as usize];
        *newest = newest.saturating_add(1);
    }

    /// Lower bound of the denials within the time: `count − error`.
    fn certain(&self) -> u64 {
        self.slices.iter().map(|slice| u64::from(*slice)).sum()
    }

    fn has_lapsed(&self, now: u64) -> bool {
        (now / slice(self.within.max(1))).saturating_sub(self.newest) >= SLICES as u64
    }
}

/// Eight slices of this length end within the time, whenever the first of them begins.
fn slice(within: u64) -> u64 {
    (within / SLICES as u64).max(1)
}

#[cfg(test)]
mod tests;
