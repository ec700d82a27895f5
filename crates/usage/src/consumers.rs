//! Heavy hitters: samples each worker's decisions into a sketch of fixed size.
//!
//! The first [`EXACT`] decisions between two summaries are all counted, so that a quiet server has exact numbers. After
//! them one in `rate` is sampled, at random, so that no pattern of calls evades it, and stands for `rate` decisions.

mod sketch;
mod summary;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use weir_node::telemetry::{CountedOutcome, DecisionSample, Metrics};

use self::sketch::SpaceSaving;
pub(crate) use self::summary::{ConsumerKey, ConsumerSummary, ConsumerTally, MAX_TALLIES};

/// Decisions between two summaries that are all counted.
const EXACT: u32 = 1_000;

/// The samplers of all workers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ConsumerSamplers(Arc<SamplersState>);

#[derive(Debug, Default)]
struct SamplersState {
    /// Sampling rate: one of `rate` decisions is sampled; 0 disables.
    rate: AtomicU32,
    workers: Mutex<Vec<Arc<ConsumerSampler>>>,
}

/// Sampler of one worker.
#[derive(Debug)]
struct ConsumerSampler {
    /// Sampling rate: one of `rate` decisions is sampled; 0 disables.
    rate: AtomicU32,
    /// Decisions that the next sample stands for.
    next_weight: AtomicU32,
    /// Decisions that the sample at hand stands for.
    weight: AtomicU32,
    /// Decisions left to count one by one. A summary resets it; the worker notices at its next sample.
    exact: AtomicU32,
    /// State of the random number generator.
    random: AtomicU64,
    /// Contended only for a moment every ten seconds.
    sketch: Mutex<SpaceSaving>,
}

impl ConsumerSamplers {
    /// Samples one in `rate` decisions of all workers, after the first ones; 0 disables.
    #[must_use]
    pub fn start(metrics: &Metrics, rate: u32) -> Self {
        let samplers = Self::default();
        samplers.0.rate.store(rate, Relaxed);
        let all = samplers.clone();
        metrics.sample(Box::new(move || all.add_worker()));
        samplers
    }

    fn add_worker(&self) -> Arc<dyn DecisionSample> {
        let sampler = Arc::new(ConsumerSampler::new(self.0.rate.load(Relaxed)));
        self.0.workers.lock().push(Arc::clone(&sampler));
        sampler
    }

    /// Samples one in `rate` decisions from now on.
    pub(crate) fn set_rate(&self, metrics: &Metrics, rate: u32) {
        if self.0.rate.swap(rate, Relaxed) != rate {
            self.0.workers.lock().iter().for_each(|sampler| sampler.set_rate(rate));
            metrics.begin_samples();
        }
    }

    /// Takes the samples of all workers since the last call.
    #[must_use]
    pub(crate) fn take(&self) -> ConsumerSummary {
        let workers = self.0.workers.lock().clone();
        let parts: Vec<ConsumerSummary> = workers.iter().map(|sampler| sampler.take()).collect();
        ConsumerSummary::merged(&parts)
    }
}

impl ConsumerSampler {
    fn new(rate: u32) -> Self {
        Self {
            rate: AtomicU32::new(rate),
            next_weight: AtomicU32::new(1),
            weight: AtomicU32::new(1),
            exact: AtomicU32::new(EXACT),
            random: AtomicU64::new(RandomState::new().hash_one(0_u8) | 1),
            sketch: Mutex::default(),
        }
    }

    fn set_rate(&self, rate: u32) {
        self.rate.store(rate, Relaxed);
        self.next_weight.store(1, Relaxed);
    }

    /// Takes the samples since the last call. Its rate is 1 if every decision was counted.
    fn take(&self) -> ConsumerSummary {
        let taken = std::mem::take(&mut *self.sketch.lock());
        self.exact.store(EXACT, Relaxed);
        taken.into_summary(self.rate.load(Relaxed))
    }
}

impl DecisionSample for ConsumerSampler {
    /// Draws the distance to the next sample: `rate` on average.
    fn begin(&self) -> Option<u32> {
        let rate = self.rate.load(Relaxed);
        if rate == 0 {
            return None;
        }
        self.weight.store(self.next_weight.load(Relaxed), Relaxed);
        let exact = self.exact.load(Relaxed);
        if exact > 0 {
            self.exact.store(exact - 1, Relaxed);
        }
        if exact > 1 {
            self.next_weight.store(1, Relaxed);
            return Some(1);
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
        Some(u32::try_from(next).unwrap_or(rate))
    }

    /// Adds a decision to the sketch, unless it ended in an error or passed without a charge.
    fn add(&self, strategy: u32, outcome: CountedOutcome, consumer: &str) {
        let is_counted = !consumer.is_empty() && !outcome.is_uncharged();
        if let Some(allowed) = outcome.is_allowed().filter(|_| is_counted) {
            self.sketch.lock().add(strategy, allowed, consumer, self.weight.load(Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker, and the decisions until its next sample.
    struct Worker(ConsumerSampler, u32);

    impl Worker {
        fn new(rate: u32) -> Self {
            Self(ConsumerSampler::new(rate), 1)
        }

        fn calls(&mut self, consumer: &str, count: u32) {
            for _ in 0..count {
                self.1 = self.1.wrapping_sub(1);
                if self.1 == 0 {
                    let next = self.0.begin();
                    self.1 = next.unwrap_or(u32::MAX);
                    next.iter().for_each(|_| self.0.add(0, CountedOutcome::Allowed, consumer));
                }
            }
        }

        fn take(&self) -> ConsumerSummary {
            self.0.take()
        }
    }

    #[test]
    fn the_first_decisions_are_counted_one_by_one() {
        let mut worker = Worker::new(16);
        for _ in 0..3 {
            worker.calls("bob", 1);
            worker.calls("ann", 998);
            let summary = worker.take();
            let of = |name: &str| summary.tallies.iter().find(|it| &*it.key.consumer == name).unwrap();
            assert_eq!((of("bob").count, of("ann").count, summary.calls, summary.rate), (1, 998, 999, 1));
            assert_eq!(summary.sampling_error(1), 0);
        }
    }

    #[test]
    fn what_comes_after_them_is_sampled_and_the_next_summary_is_not_called_complete() {
        let mut worker = Worker::new(16);
        worker.calls("bob", 101_000);
        let summary = worker.take();
        assert_eq!(summary.rate, 16);
        let (count, error) = (summary.tallies[0].count, summary.sampling_error(summary.tallies[0].count));
        assert!(count.abs_diff(101_000) <= error && error > 0, "{count} ± {error}");
        // The first sample after it stands for decisions of both, so this one is not complete, and the one after it is.
        worker.calls("bob", 500);
        let summary = worker.take();
        assert!(summary.rate == 16 && summary.calls.abs_diff(500) <= 64, "{summary:?}");
        worker.calls("bob", 500);
        let summary = worker.take();
        assert_eq!((summary.rate, summary.calls), (1, 500));
    }

    #[test]
    fn without_a_rate_nothing_is_sampled() {
        let mut worker = Worker::new(0);
        worker.calls("bob", 10_000);
        assert_eq!((worker.take().calls, worker.take().rate), (0, 0));
    }
}
