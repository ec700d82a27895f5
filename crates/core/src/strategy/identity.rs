//! Ids of strategies, unique within a process and over time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Unique number of a set of limits in this process. A reload and an override have new ones; a clone has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StrategyId(u64);

impl StrategyId {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Relaxed))
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}
