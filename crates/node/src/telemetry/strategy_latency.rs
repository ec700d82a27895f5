//! `weir_strategy_duration_seconds`: times of decisions by configured strategy.
//!
//! A round adds its time once per strategy. Buckets are coarser than those of methods, so that a thousand strategies
//! stay a page that a scraper reads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus::proto::Metric;

use super::families::labelled;
use super::histogram::{bucket, cumulative, in_nanos, nanos};
use super::names::CounterNames;

/// Strategies with series of their own: the first ones of the configuration.
pub(super) const MAX_TIMED: usize = 1_000;

/// Upper bounds in microseconds.
const BOUNDS_US: [u64; 8] = [20, 100, 500, 2_000, 10_000, 50_000, 250_000, 1_000_000];

const BOUNDS_NS: [u64; BOUNDS_US.len()] = in_nanos(BOUNDS_US);

/// Decisions per bucket, the last one without a bound; then the sum of their times in nanoseconds.
pub(super) type StrategyTimes = [u64; BOUNDS_US.len() + 2];

/// Times by the number of the strategy's name.
pub(super) type StrategyTimeSums = BTreeMap<u32, StrategyTimes>;

/// One worker's times of one strategy.
#[derive(Debug, Default)]
pub(super) struct StrategyLatency([AtomicU64; BOUNDS_US.len() + 2]);

impl StrategyLatency {
    #[inline]
    pub(super) fn observe(&self, took: Duration, count: u64) {
        let ns = nanos(took);
        let [counts @ .., sum_ns] = &self.0;
        if let Some(counted) = counts.get(bucket(&BOUNDS_NS, ns)) {
            counted.fetch_add(count, Relaxed);
        }
        sum_ns.fetch_add(ns.wrapping_mul(count), Relaxed);
    }

    pub(super) fn add_to(&self, sums: &mut StrategyTimeSums, number: u32) {
        let sums = sums.entry(number).or_default();
        sums.iter_mut().zip(&self.0).for_each(|(sum, add)| *sum = sum.wrapping_add(add.load(Relaxed)));
    }
}

/// A histogram of each strategy that still has a name.
pub(super) fn metrics(sums: &StrategyTimeSums, names: &CounterNames) -> Vec<Metric> {
    let of = |(&number, times): (&u32, &StrategyTimes)| {
        let [counts @ .., sum_ns] = times;
        let mut metric = labelled(&[("strategy", &**names.strategy(number)?)]);
        metric.set_histogram(cumulative(&BOUNDS_US, counts, *sum_ns));
        Some(metric)
    };
    sums.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_by_name_and_in_their_buckets() {
        let latency = StrategyLatency::default();
        for us in [20, 21, 1_000_000, 1_000_001] {
            latency.observe(Duration::from_micros(us), 2);
        }
        let mut sums = StrategyTimeSums::new();
        latency.add_to(&mut sums, 1);
        latency.add_to(&mut sums, 7);
        let shown = metrics(&sums, &CounterNames::new(&["a".into(), "b".into()], &[]));
        assert_eq!(shown.len(), 1, "a dropped name has no series");
        assert_eq!(shown[0].get_label()[0].value(), "b");
        let histogram = shown[0].get_histogram();
        let counts: Vec<u64> = histogram.get_bucket().iter().map(|it| it.cumulative_count()).collect();
        assert_eq!(counts, [2, 4, 4, 4, 4, 4, 4, 6]);
        assert_eq!(histogram.get_sample_count(), 8);
        assert!((histogram.get_sample_sum() - 4.000_084).abs() < 1e-9);
    }
}
