//! Heavy hitters: samples a worker's decisions into a sketch of fixed size.
//!
//! The first [`EXACT`] decisions between two summaries are all counted, so that a quiet server has exact numbers. After
//! them one in `rate` is sampled, at random, so that no pattern of calls evades it, and stands for `rate` decisions.
//! Between two samples a decision costs a counter and a branch.

mod sketch;
mod summary;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use self::sketch::SpaceSaving;
pub use self::summary::{ConsumerKey, ConsumerSummary, ConsumerTally, MAX_TALLIES};
use super::outcome::CountedOutcome;

/// Decisions between two summaries that are all counted.
const EXACT: u32 = 1_000;

/// Sampler of one worker.
#[derive(Debug)]
pub(super) struct ConsumerSampler {
    /// Samples one in so many decisions; 0 disables.
    rate: AtomicU32,
    /// Decisions until the next sample.
    until_next: AtomicU32,
    /// Decisions that the next sample stands for.
    next_weight: AtomicU32,
    /// Decisions that the sample at hand stands for.
    weight: AtomicU32,
    /// Decisions that are still counted one by one. A summary starts it anew; the worker notices at its next sample.
    exact: AtomicU32,
    /// State of the random number generator.
    random: AtomicU64,
    /// Contended only for a moment every ten seconds.
    sketch: Mutex<SpaceSaving>,
}

impl Default for ConsumerSampler {
    fn default() -> Self {
        Self {
            rate: AtomicU32::new(0),
            until_next: AtomicU32::new(u32::MAX),
            next_weight: AtomicU32::new(1),
            weight: AtomicU32::new(1),
            exact: AtomicU32::new(EXACT),
            random: AtomicU64::new(RandomState::new().hash_one(0_u8) | 1),
            sketch: Mutex::default(),
        }
    }
}

impl ConsumerSampler {
    /// Samples one in `rate` decisions from now on, after the first ones.
    pub(super) fn set_rate(&self, rate: u32) {
        self.rate.store(rate, Relaxed);
        self.next_weight.store(1, Relaxed);
        self.until_next.store(if rate == 0 { u32::MAX } else { 1 }, Relaxed);
    }

    /// True if this decision is sampled.
    #[inline]
    pub(super) fn takes(&self) -> bool {
        let until_next = self.until_next.load(Relaxed).wrapping_sub(1);
        self.until_next.store(until_next, Relaxed);
        until_next == 0 && self.begin_next()
    }

    /// Draws the distance to the next sample: `rate` on average.
    #[cold]
    fn begin_next(&self) -> bool {
        let rate = self.rate.load(Relaxed);
        if rate == 0 {
            self.until_next.store(u32::MAX, Relaxed);
            return false;
        }
        self.weight.store(self.next_weight.load(Relaxed), Relaxed);
        let exact = self.exact.load(Relaxed);
        if exact > 0 {
            self.exact.store(exact - 1, Relaxed);
        }
        if exact > 1 {
            self.next_weight.store(1, Relaxed);
            self.until_next.store(1, Relaxed);
            return true;
        }
        self.next_weight.store(rate, Relaxed);
        // Marsaglia's xorshift.
        let mut random = self.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.store(random, Relaxed);
        let widest = u64::from(rate).saturating_mul(2).saturating_sub(1);
        let next = 1 + (random >> 32).wrapping_mul(widest) / (1 << 32);
        self.until_next.store(u32::try_from(next).unwrap_or(rate), Relaxed);
        true
    }

    /// Adds a sampled decision to the sketch, unless it ended in an error or passed without a charge.
    #[cold]
    pub(super) fn add(&self, strategy: u32, outcome: CountedOutcome, consumer: &str) {
        let is_counted = !consumer.is_empty() && !outcome.is_uncharged();
        if let Some(allowed) = outcome.is_allowed().filter(|_| is_counted) {
            self.sketch.lock().add(strategy, allowed, consumer, self.weight.load(Relaxed));
        }
    }

    /// Takes the samples since the last call. Its rate is 1 if every decision was counted.
    pub(super) fn take(&self) -> ConsumerSummary {
        let taken = std::mem::take(&mut *self.sketch.lock());
        self.exact.store(EXACT, Relaxed);
        taken.into_summary(self.rate.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(sampler: &ConsumerSampler, consumer: &str, count: u32) {
        for _ in 0..count {
            if sampler.takes() {
                sampler.add(0, CountedOutcome::Allowed, consumer);
            }
        }
    }

    #[test]
    fn the_first_decisions_are_counted_one_by_one() {
        let sampler = ConsumerSampler::default();
        sampler.set_rate(16);
        for _ in 0..3 {
            calls(&sampler, "bob", 1);
            calls(&sampler, "ann", 998);
            let summary = sampler.take();
            let of = |name: &str| summary.tallies.iter().find(|it| &*it.key.consumer == name).unwrap();
            assert_eq!((of("bob").count, of("ann").count, summary.calls, summary.rate), (1, 998, 999, 1));
            assert_eq!(summary.sampling_error(1), 0);
        }
    }

    #[test]
    fn what_comes_after_them_is_sampled_and_the_next_summary_is_not_called_complete() {
        let sampler = ConsumerSampler::default();
        sampler.set_rate(16);
        calls(&sampler, "bob", 101_000);
        let summary = sampler.take();
        assert_eq!(summary.rate, 16);
        let (count, error) = (summary.tallies[0].count, summary.sampling_error(summary.tallies[0].count));
        assert!(count.abs_diff(101_000) <= error && error > 0, "{count} ± {error}");
        // The first sample after it stands for decisions of both, so this one is not complete, and the one after it is.
        calls(&sampler, "bob", 500);
        let summary = sampler.take();
        assert!(summary.rate == 16 && summary.calls.abs_diff(500) <= 64, "{summary:?}");
        calls(&sampler, "bob", 500);
        let summary = sampler.take();
        assert_eq!((summary.rate, summary.calls), (1, 500));
    }

    #[test]
    fn without_a_rate_nothing_is_sampled() {
        let sampler = ConsumerSampler::default();
        sampler.set_rate(0);
        calls(&sampler, "bob", 10_000);
        assert_eq!((sampler.take().calls, sampler.take().rate), (0, 0));
    }
}
