//! Counts of the denial cache: how often it answered, and how often the store was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::backend::DenialStats;

/// Workers with counts of their own; further ones share them.
const LINES: usize = 64;

#[derive(Clone, Default)]
pub(super) struct CacheCounts(Arc<SharedCacheCounts>);

struct SharedCacheCounts {
    lines: [CacheLineCounts; LINES],
    workers: AtomicUsize,
}

/// One worker's counts. Aligned to a cache line, so that workers do not write to one another's.
#[derive(Default)]
#[repr(align(64))]
struct CacheLineCounts {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Default for SharedCacheCounts {
    fn default() -> Self {
        Self { lines: std::array::from_fn(|_| CacheLineCounts::default()), workers: AtomicUsize::default() }
    }
}

pub(super) struct WorkerCacheCounts {
    counts: CacheCounts,
    line: usize,
}

impl CacheCounts {
    pub(super) fn worker(&self) -> WorkerCacheCounts {
        let line = self.0.workers.fetch_add(1, Relaxed) % LINES;
        WorkerCacheCounts { counts: self.clone(), line }
    }

    pub(super) fn sum(&self) -> DenialStats {
        let sum = |count: fn(&CacheLineCounts) -> &AtomicU64| {
            self.0.lines.iter().map(|line| count(line).load(Relaxed)).fold(0, u64::wrapping_add)
        };
        DenialStats { hits: sum(|line| &line.hits), misses: sum(|line| &line.misses) }
    }
}

impl WorkerCacheCounts {
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
