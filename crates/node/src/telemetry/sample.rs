//! A sample of decisions that a feature takes. Here is only the countdown to the next one, which each decision passes.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::outcome::CountedOutcome;

/// The sample of one worker.
pub trait DecisionSample: Debug + Send + Sync {
    /// Begins with the decision at hand. Returns the distance to the next one, from 1; `None` if nothing is sampled, not even
    /// this decision.
    fn begin(&self) -> Option<u32>;

    /// Adds a decision, under the strategy with this number among the names of the counters.
    fn add(&self, strategy: u32, outcome: CountedOutcome, consumer: &str);
}

/// A constructor of the sample of one more worker.
pub type MakeSample = Box<dyn Fn() -> Arc<dyn DecisionSample> + Send + Sync>;

/// The countdown of one worker. Between two samples a decision costs a counter and a branch.
#[derive(Debug)]
pub(super) struct SampleCountdown {
    until_next: AtomicU32,
    sample: OnceLock<Arc<dyn DecisionSample>>,
}

impl Default for SampleCountdown {
    fn default() -> Self {
        Self { until_next: AtomicU32::new(u32::MAX), sample: OnceLock::new() }
    }
}

impl SampleCountdown {
    /// Gives decisions to `sample` from now on. Later calls are ignored: a worker has one sample.
    pub(super) fn give(&self, sample: Arc<dyn DecisionSample>) {
        let _ = self.sample.set(sample);
        self.begin();
    }

    pub(super) fn begin(&self) {
        self.until_next.store(1, Relaxed);
    }

    #[inline]
    pub(super) fn takes(&self) -> bool {
        let until_next = self.until_next.load(Relaxed).wrapping_sub(1);
        self.until_next.store(until_next, Relaxed);
        until_next == 0 && self.begin_next()
    }

    #[cold]
    fn begin_next(&self) -> bool {
        let next = self.sample.get().and_then(|sample| sample.begin());
        self.until_next.store(next.map_or(u32::MAX, |next| next.max(1)), Relaxed);
        next.is_some()
    }

    #[cold]
    pub(super) fn add(&self, strategy: u32, outcome: CountedOutcome, consumer: &str) {
        if let Some(sample) = self.sample.get() {
            sample.add(strategy, outcome, consumer);
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// Samples every third decision.
    #[derive(Debug, Default)]
    struct Third(Mutex<Vec<String>>);

    impl DecisionSample for Third {
        fn begin(&self) -> Option<u32> {
            (self.0.lock().len() < 3).then_some(3)
        }

        fn add(&self, _: u32, _: CountedOutcome, consumer: &str) {
            self.0.lock().push(consumer.to_owned());
        }
    }

    #[test]
    fn the_sample_says_when_the_next_decision_is_due() {
        let countdown = SampleCountdown::default();
        let decide = |number: u32| {
            if countdown.takes() {
                countdown.add(0, CountedOutcome::Allowed, &number.to_string());
            }
        };
        (0..5).for_each(decide);
        let sample = Arc::new(Third::default());
        countdown.give(Arc::clone(&sample) as Arc<dyn DecisionSample>);
        (5..50).for_each(decide);
        assert_eq!(*sample.0.lock(), ["5", "8", "11"], "then it takes no more");
        sample.0.lock().clear();
        countdown.begin();
        decide(50);
        assert_eq!(*sample.0.lock(), ["50"]);
    }
}
