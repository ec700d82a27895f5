//! SpaceSaving (Metwally, Agrawal, El Abbadi: "Efficient computation of frequent and top-k elements in data streams").
//!
//! A sketch holds at most [`MAX_TALLIES`] keys. A new key replaces the one with the smallest count and continues from
//! that count, so a count is too high by at most the count it started with, and never too low.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

use super::summary::{ConsumerKey, ConsumerSummary, ConsumerTally, MAX_TALLIES};

#[derive(Debug, Default)]
pub(super) struct SpaceSaving {
    /// Index of a key by its hash. If two keys share a hash, only the first is found.
    places: HashMap<u64, usize, RandomState>,
    tallies: Vec<(u64, ConsumerTally)>,
    hasher: RandomState,
    /// Decisions that the samples stand for.
    calls: u64,
    /// The most decisions that a sample stands for.
    coarsest: u32,
    /// The smallest count, once the sketch is full.
    smallest: u64,
    /// Position at which the search for the smallest count continues.
    hand: usize,
}

impl SpaceSaving {
    /// Adds a sample that stands for `weight` decisions.
    pub(super) fn add(&mut self, strategy: u32, allowed: bool, consumer: &str, weight: u32) {
        self.coarsest = self.coarsest.max(weight);
        let weight = u64::from(weight);
        self.calls += weight;
        let hash = self.hasher.hash_one((strategy, allowed, consumer));
        if let Some((_, tally)) = self.places.get(&hash).and_then(|&place| self.tallies.get_mut(place)) {
            tally.count += weight;
            return;
        }
        let key = ConsumerKey { strategy, allowed, consumer: consumer.into() };
        if self.tallies.len() < MAX_TALLIES {
            self.places.insert(hash, self.tallies.len());
            self.tallies.push((hash, ConsumerTally { key, count: weight, error: 0 }));
            return;
        }
        let (place, count) = self.find_smallest();
        if let Some((known, tally)) = self.tallies.get_mut(place) {
            if let Entry::Occupied(entry) = self.places.entry(*known) {
                entry.remove();
            }
            self.places.insert(hash, place);
            *known = hash;
            *tally = ConsumerTally { key, count: count + weight, error: count };
        }
    }

    /// Index of a key with the smallest count, and this count.
    ///
    /// Counts only grow. So a search goes on where the last one ended, and all counts are compared only when no key has
    /// the smallest count any more. Where each consumer calls rarely, that is once in [`MAX_TALLIES`] searches.
    fn find_smallest(&mut self) -> (usize, u64) {
        let rest = self.tallies.get(self.hand..).unwrap_or_default();
        if let Some(passed) = rest.iter().position(|(_, tally)| tally.count == self.smallest) {
            self.hand += passed;
            return (self.hand, self.smallest);
        }
        let counts = self.tallies.iter().map(|(_, tally)| tally.count).enumerate();
        (self.hand, self.smallest) = counts.min_by_key(|(_, count)| *count).unwrap_or_default();
        (self.hand, self.smallest)
    }

    /// The summary of the sketch. Its rate is that of the coarsest sample; without samples 1, or 0 if `rate` is 0.
    pub(super) fn into_summary(self, rate: u32) -> ConsumerSummary {
        let is_full = self.tallies.len() == MAX_TALLIES;
        let smallest = self.tallies.iter().map(|(_, tally)| tally.count).min().unwrap_or(0);
        ConsumerSummary {
            tallies: self.tallies.into_iter().map(|(_, tally)| tally).collect(),
            missing: if is_full { smallest } else { 0 },
            calls: self.calls,
            rate: if self.coarsest > 0 { self.coarsest } else { rate.min(1) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_within_its_error() {
        let mut sketch = SpaceSaving::default();
        let mut exact = HashMap::<String, u64>::new();
        let mut random = 1_u64;
        for _ in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // About as Zipf has it: the inverse of a uniform number.
            let consumer = format!("c{}", 10_000 / (1 + (random >> 33) % 10_000));
            sketch.add(0, true, &consumer, 1);
            *exact.entry(consumer).or_default() += 1;
        }
        let summary = sketch.into_summary(1);
        assert_eq!((summary.tallies.len().min(256), summary.calls), (exact.len().min(256), 200_000));
        for ConsumerTally { key, count, error } in &summary.tallies {
            let exact = exact[&*key.consumer];
            assert!(*count >= exact && count - error <= exact, "{key:?}: {count} - {error}, not {exact}");
        }
        for (consumer, exact) in exact {
            let found = summary.tallies.iter().any(|tally| *tally.key.consumer == *consumer);
            assert!(found || exact <= summary.missing, "{consumer} has {exact}");
        }
        assert!(summary.missing <= 200_000 / MAX_TALLIES as u64);
    }
}
