//! The record of an acked item, and the search for records.

use super::ItemId;

/// Outcome of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeRecord {
    /// When it was acked: the id of the record.
    pub at: ItemId,
    /// The item.
    pub item: ItemId,
    /// Number of deliveries.
    pub deliveries: u64,
    /// Name of the worker.
    pub taker: Box<str>,
    /// The worker's text.
    pub text: Box<str>,
}

/// Which outcomes are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeSearch {
    /// Only that of this item.
    pub item: Option<ItemId>,
    /// The earliest millisecond.
    pub from_ms: u64,
    /// Only outcomes before this one.
    pub before: ItemId,
    /// The most outcomes, 1 to [`MAX_ITEMS`](super::MAX_ITEMS).
    pub max_items: usize,
}
