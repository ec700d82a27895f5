//! How many bytes the memory store may use, and does.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::MemoryStats;
use crate::StoreError;

/// One budget for all shards: a strategy whose keys share a tag may fill it from one shard.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
    evictions: AtomicU64,
    refusals: AtomicU64,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0), evictions: AtomicU64::new(0), refusals: AtomicU64::new(0) }
    }

    /// Takes `bytes` if they fit.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|&used| used <= self.limit);
        self.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Records that something of `before` bytes now has `after`; growth in place may overshoot.
    pub(super) fn moved(&self, before: usize, after: usize) {
        if after > before {
            self.used.fetch_add(after - before, Relaxed);
        } else if before > after {
            self.used.fetch_sub(before - after, Relaxed);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.used.load(Relaxed) > self.limit
    }

    /// Counts a key that was dropped although it still counted.
    pub(super) fn evicted(&self) {
        self.evictions.fetch_add(1, Relaxed);
    }

    /// Counts a key that found no room.
    pub(super) fn refuse(&self) -> StoreError {
        self.refusals.fetch_add(1, Relaxed);
        StoreError::Full(self.limit)
    }

    pub(super) fn stats(&self, keys: usize) -> MemoryStats {
        MemoryStats {
            keys,
            bytes: self.used.load(Relaxed),
            budget: self.limit,
            evictions: self.evictions.load(Relaxed),
            refusals: self.refusals.load(Relaxed),
        }
    }
}
