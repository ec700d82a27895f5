//! Counters of which each worker has its own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A line per worker, so that they do not write to one another's.
#[derive(Debug)]
pub(super) struct Lines(Box<[MetricLine]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct MetricLine([AtomicU64; 8]);

impl Lines {
    pub(super) fn new(workers: usize) -> Self {
        Self((0..workers.max(1)).map(|_| MetricLine::default()).collect())
    }

    pub(super) fn add(&self, worker: usize, index: usize, count: u64) {
        self.0[worker % self.0.len()].0[index].fetch_add(count, Relaxed);
    }

    pub(super) fn sum(&self, index: usize) -> u64 {
        self.0.iter().map(|line| line.0[index].load(Relaxed)).fold(0, u64::wrapping_add)
    }
}
