//! Heavy hitters: samples a worker's decisions into a sketch of fixed size.
//!
//! One in `rate` decisions is sampled, at random, so that no pattern of calls evades it. Between two samples a
//! decision costs a counter and a branch.

mod sketch;
mod summary;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use self::sketch::SpaceSaving;
pub use self::summary::{ConsumerKey, ConsumerSummary, ConsumerTally, MAX_TALLIES};
use super::recorder::CountedOutcome;

/// Sampler of one worker.
#[derive(Debug)]
pub(super) struct ConsumerSampler {
    /// Samples one in so many decisions; 0 disables.
    rate: AtomicU32,
    /// Decisions until the next sample.
    until_next: AtomicU32,
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
            random: AtomicU64::new(RandomState::new().hash_one(0_u8) | 1),
            sketch: Mutex::default(),
        }
    }
}

impl ConsumerSampler {
    /// Samples one in `rate` decisions from now on.
    pub(super) fn set_rate(&self, rate: u32) {
        self.rate.store(rate, Relaxed);
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
            self.sketch.lock().add(strategy, allowed, consumer);
        }
    }

    /// Takes the samples since the last call.
    pub(super) fn take(&self) -> ConsumerSummary {
        let taken = std::mem::take(&mut *self.sketch.lock());
        taken.into_summary(self.rate.load(Relaxed))
    }
}
