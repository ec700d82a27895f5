//! Decision times of this node, by minute of the last hour.

use std::collections::VecDeque;

use weir_node::telemetry::{LatencyCounts, quantile_us};

/// Number of whole minutes kept.
const MINUTES: usize = 60;

/// Decision times of a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LatencyPoint {
    /// Start of the minute, in seconds since 1970.
    pub(crate) at: u64,
    /// Median of the decision times, in microseconds.
    pub p50_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
}

pub(super) struct LatencyHistory {
    minutes: VecDeque<(u64, LatencyCounts)>,
    /// Counters at the last read.
    last: LatencyCounts,
}

impl LatencyHistory {
    pub(super) fn new(counted: LatencyCounts) -> Self {
        Self { minutes: VecDeque::new(), last: counted }
    }

    /// Drops all minutes.
    pub(super) fn forget(&mut self) {
        self.minutes.clear();
    }

    /// Adds the counts since the last call to the minute of `second`.
    pub(super) fn add(&mut self, second: u64, counted: LatencyCounts) {
        let minute = second / 60;
        let mut since = counted;
        since.iter_mut().zip(&self.last).for_each(|(count, last)| *count = count.saturating_sub(*last));
        self.last = counted;
        if since.iter().all(|count| *count == 0) {
            return;
        }
        match self.minutes.back_mut() {
            Some((known, counts)) if *known >= minute => {
                counts.iter_mut().zip(since).for_each(|(count, more)| *count += more);
            }
            _ => self.minutes.push_back((minute, since)),
        }
        if self.minutes.len() > MINUTES {
            self.minutes.pop_front();
        }
    }

    /// The minutes of the last hour with decisions, oldest first.
    pub(super) fn points(&self, now: u64) -> Vec<LatencyPoint> {
        let first = (now / 60).saturating_sub(MINUTES as u64 - 1);
        let point = |(minute, counts): &(u64, LatencyCounts)| LatencyPoint {
            at: minute * 60,
            p50_us: quantile_us(counts, 0.5),
            p99_us: quantile_us(counts, 0.99),
        };
        self.minutes.iter().filter(|(minute, _)| *minute >= first).map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minute_has_its_own_quantiles() {
        let mut counts = LatencyCounts::default();
        let mut history = LatencyHistory::new(counts);
        counts[3] += 100;
        history.add(600, counts);
        counts[5] += 100;
        history.add(661, counts);
        history.add(662, counts);
        let points = history.points(700);
        assert_eq!(points.iter().map(|point| point.at).collect::<Vec<_>>(), [600, 660]);
        assert!(points[0].p99_us <= 50.0 && points[1].p50_us > 100.0, "{points:?}");
        assert_eq!(history.points(10_000), []);
    }
}
