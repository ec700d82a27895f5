//! Counts of the denial cache: how often it answered, and how often the store was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::backend::DenialStats;

/// Workers with counts of their own; further ones share them.
const LINES: usize = 64;

/// Counts of all workers of a node.
#[derive(Clone, Default)]
pub(super) struct DenialCounts(Arc<SharedDenialCounts>);

struct SharedDenialCounts {
    lines: [DenialLine; LINES],
    workers: AtomicUsize,
}

/// One worker's counts. Aligned to a cache line, so that workers do not write to one another's.
#[derive(Default)]
#[repr(align(64))]
struct DenialLine {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Default for SharedDenialCounts {
    fn default() -> Self {
        Self { lines: std::array::from_fn(|_| DenialLine::default()), workers: AtomicUsize::default() }
    }
}

/// One worker's handle.
pub(super) struct WorkerCounts {
    counts: DenialCounts,
    line: usize,
}

impl DenialCounts {
    /// The handle of one more worker.
    pub(super) fn worker(&self) -> WorkerCounts {
        let line = self.0.workers.fetch_add(1, Relaxed) % LINES;
        WorkerCounts { counts: self.clone(), line }
    }

    /// Sums of all workers.
    pub(super) fn sum(&self) -> DenialStats {
        let sum = |count: fn(&DenialLine) -> &AtomicU64| {
            self.0.lines.iter().map(|line| count(line).load(Relaxed)).fold(0, u64::wrapping_add)
        };
        DenialStats { hits: sum(|line| &line.hits), misses: sum(|line| &line.misses) }
    }
}

impl WorkerCounts {
    /// Counts an answer of the cache.
    pub(super) fn hit(&self) {
        if let Some(line) = self.counts.0.lines.get(self.line) {
            line.hits.fetch_add(1, Relaxed);
        }
    }

    /// Counts a decision that the store was asked for.
    pub(super) fn missed(&self) {
        if let Some(line) = self.counts.0.lines.get(self.line) {
            line.misses.fetch_add(1, Relaxed);
        }
    }
}
