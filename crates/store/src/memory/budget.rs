//! The byte budget of the memory store.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use weir_config::MemoryConfig;

use super::SHARDS;
use super::owners::{OwnerId, Owners};
use crate::StoreError;
use crate::backend::MemoryStats;

/// One budget for all shards: a strategy whose keys share a tag may fill it from one shard.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    /// Threshold of the last tenth, in which an owner above its share gets no additional key.
    scarce_above: usize,
    used: AtomicUsize,
    evictions: AtomicU64,
    refusals: AtomicU64,
    owners: Owners,
}

/// Reason that there is no room for a state.
#[derive(Debug, Clone, Copy)]
pub(super) enum NoRoom {
    /// The budget is exhausted, and nothing may be evicted.
    Budget,
    /// The share of ids is used up.
    Ids,
}

impl Budget {
    pub(super) fn new(config: &MemoryConfig) -> Self {
        let limit = config.budget;
        Self {
            limit,
            scarce_above: limit - limit / 10,
            used: AtomicUsize::new(0),
            evictions: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            owners: Owners::new(limit, config.id_share.unwrap_or(limit / 4), config.share),
        }
    }

    /// The owners of keys, and how much each holds.
    pub(super) fn owners(&self) -> &Owners {
        &self.owners
    }

    pub(super) fn take(&self, bytes: usize) -> bool {
        self.take_up_to(bytes, self.limit)
    }

    /// Takes `bytes` if they fit without touching the last tenth.
    pub(super) fn take_unless_scarce(&self, bytes: usize) -> bool {
        self.take_up_to(bytes, self.scarce_above)
    }

    fn take_up_to(&self, bytes: usize, limit: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|&used| used <= limit);
        self.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Records that something of `owner` with `before` bytes now has `after`; growth in place may overshoot.
    pub(super) fn moved(&self, owner: OwnerId, before: usize, after: usize) {
        if after > before {
            self.used.fetch_add(after - before, Relaxed);
            self.owners.took(owner, after - before);
        } else if before > after {
            self.used.fetch_sub(before - after, Relaxed);
            self.owners.gave(owner, before - after);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.used.load(Relaxed) > self.limit
    }

    /// True if only the last tenth is free, or less.
    pub(super) fn is_scarce(&self) -> bool {
        self.used.load(Relaxed) > self.scarce_above
    }

    /// True if more than the last tenth is free, as estimated from a shard with so many `bytes` of free slots: the
    /// bytes that no shard has taken, and as much in every other shard.
    pub(super) fn has_spare(&self, bytes: usize) -> bool {
        let used = self.used.load(Relaxed);
        self.limit.saturating_sub(used).saturating_add(bytes.saturating_mul(SHARDS))
            >= self.limit - self.scarce_above
    }

    /// Counts a key that was dropped although it still counted.
    pub(super) fn evicted(&self) {
        self.evictions.fetch_add(1, Relaxed);
    }

    pub(super) fn refuse(&self, why: NoRoom) -> StoreError {
        self.refusals.fetch_add(1, Relaxed);
        match why {
            NoRoom::Budget => StoreError::Full(self.limit),
            NoRoom::Ids => StoreError::IdsFull(self.owners.ids_limit()),
        }
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
