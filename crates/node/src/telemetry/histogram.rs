//! A histogram of durations with fixed buckets, summed at scrape time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds in microseconds: from a decision in memory to a typical client timeout.
const BOUNDS_US: [u64; 17] = [
    5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000,
];

const BOUNDS_NS: [u64; BOUNDS_US.len()] = in_nanos(BOUNDS_US);

pub(super) const fn in_nanos<const N: usize>(mut bounds: [u64; N]) -> [u64; N] {
    let mut place = 0;
    while place < N {
        bounds[place] *= 1_000;
        place += 1;
    }
    bounds
}

/// A duration in nanoseconds. No decision takes centuries.
#[inline]
pub(super) fn nanos(took: Duration) -> u64 {
    took.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(took.subsec_nanos()))
}

/// The place of the bucket of `ns`. Most are in the first ones, so a search from there is the shortest.
#[inline]
pub(super) fn bucket(bounds_ns: &[u64], ns: u64) -> usize {
    bounds_ns.iter().take_while(|&&bound| ns > bound).count()
}

/// The place of a duration in each [`Histogram`].
#[derive(Debug, Clone, Copy)]
pub(super) struct LatencyBucket(usize);

impl LatencyBucket {
    #[inline]
    pub(super) fn new(ns: u64) -> Self {
        Self(bucket(&BOUNDS_NS, ns))
    }
}

/// Durations per bucket.
pub type LatencyCounts = [u64; BOUNDS_US.len() + 1];

/// The quantile `part` in microseconds, interpolated linearly within its bucket. Durations beyond the last bound
/// count as that bound.
pub fn quantile_us(counts: &LatencyCounts, part: f64) -> f64 {
    let wanted = part * counts.iter().sum::<u64>() as f64;
    let (mut before, mut from) = (0.0, 0.0);
    for (&count, &to) in counts.iter().zip(&BOUNDS_US) {
        let (count, to) = (count as f64, to as f64);
        if count > 0.0 && before + count >= wanted {
            return from + (to - from) * (wanted - before) / count;
        }
        (before, from) = (before + count, to);
    }
    from
}

#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// One per bound, and one for longer durations.
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, took: Duration, count: u64) {
        self.observe_ns(nanos(took), count);
    }

    /// Adds `count` durations of so many nanoseconds each.
    #[inline]
    pub(super) fn observe_ns(&self, ns: u64, count: u64) {
        self.add(LatencyBucket::new(ns), ns, count);
    }

    #[inline]
    pub(super) fn add(&self, bucket: LatencyBucket, ns: u64, count: u64) {
        if let Some(counted) = self.counts.get(bucket.0) {
            counted.fetch_add(count, Relaxed);
        }
        self.sum_ns.fetch_add(ns.wrapping_mul(count), Relaxed);
    }

    pub(super) fn add_to(&self, sums: &mut LatencyCounts) {
        sums.iter_mut().zip(&self.counts).for_each(|(sum, count)| *sum += count.load(Relaxed));
    }

    /// The sum of several histograms, with cumulative buckets as Prometheus wants them.
    pub(super) fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> prometheus::proto::Histogram {
        let mut counts = [0_u64; BOUNDS_US.len() + 1];
        let mut sum_ns = 0_u64;
        for part in parts {
            for (count, part) in counts.iter_mut().zip(&part.counts) {
                *count += part.load(Relaxed);
            }
            sum_ns = sum_ns.wrapping_add(part.sum_ns.load(Relaxed));
        }
        cumulative(&BOUNDS_US, &counts, sum_ns)
    }
}

/// Counts below each bound, and above the last, as the cumulative buckets of Prometheus.
pub(super) fn cumulative(bounds_us: &[u64], counts: &[u64], sum_ns: u64) -> prometheus::proto::Histogram {
    let mut cumulative = 0;
    let bucket = |(&bound, count): (&u64, &u64)| {
        cumulative += count;
        let mut bucket = prometheus::proto::Bucket::default();
        bucket.set_upper_bound(bound as f64 / 1e6);
        bucket.set_cumulative_count(cumulative);
        bucket
    };
    let buckets = bounds_us.iter().zip(counts).map(bucket).collect();
    let mut histogram = prometheus::proto::Histogram::default();
    histogram.set_bucket(buckets);
    histogram.set_sample_count(counts.iter().sum());
    histogram.set_sample_sum(sum_ns as f64 / 1e9);
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_in_its_bucket() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(7), 90);
        histogram.observe(Duration::from_micros(700), 10);
        let mut counts = LatencyCounts::default();
        histogram.add_to(&mut counts);
        assert!((5.0..=10.0).contains(&quantile_us(&counts, 0.5)));
        assert!((500.0..=1_000.0).contains(&quantile_us(&counts, 0.99)));
        histogram.observe(Duration::from_secs(9), 1_000);
        histogram.add_to(&mut counts);
        assert!((quantile_us(&counts, 0.99) - 1e6).abs() < 1e-9);
    }

    #[test]
    fn a_duration_at_a_bound_counts_below_it() {
        let histogram = Histogram::default();
        for us in [0, 5, 6, 1_000_000, 1_000_001] {
            histogram.observe(Duration::from_micros(us), 1);
        }
        let sum = Histogram::sum([&histogram].into_iter());
        let counts: Vec<u64> = sum.get_bucket().iter().map(|bucket| bucket.cumulative_count()).collect();
        assert_eq!(counts, [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4]);
        assert_eq!(sum.get_sample_count(), 5);
        assert!((sum.get_sample_sum() - 2.000_012).abs() < 1e-9);
    }
}
