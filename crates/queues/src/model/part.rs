//! The items of one queue, or of its dead letters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_units::Micros;

use super::ItemId;
use super::archive::Archive;
use super::pace::PaceState;
use super::stored_item::StoredItem;

/// Totals of a queue since it was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Items that were accepted.
    pub accepted: u64,
    /// Deliveries of items for the first time.
    pub first_deliveries: u64,
    /// Deliveries after a Nack.
    pub redelivered_nack: u64,
    /// Deliveries after a worker's time was over.
    pub redelivered_visibility: u64,
    /// Items that were acked.
    pub acked: u64,
    /// Items that went to the dead letters.
    pub dead_lettered: u64,
    /// Items removed because no worker had taken them within `max_age`, with those moved to the dead letters.
    pub aged_out: u64,
    /// Items that were dropped to make places for others.
    pub dropped: u64,
    /// Items that operators removed.
    pub purged: u64,
    /// Dead letters that came back as new items.
    pub redriven: u64,
}

/// The items of one queue.
#[derive(Debug, Default)]
pub(super) struct PartState {
    pub(super) items: BTreeMap<ItemId, StoredItem>,
    /// Items that were delivered, by the time at which they are delivered again.
    pub(super) due: BTreeSet<(Micros, ItemId)>,
    /// Last id that was delivered at least once, as all items before it.
    pub(super) delivered: ItemId,
    /// The last id.
    pub(super) last: ItemId,
    pub(super) bytes: u64,
    pub(super) pace: PaceState,
    pub(super) totals: QueueTotals,
    pub(super) outcomes: Archive,
}

impl PartState {
    pub(super) fn depth(&self) -> u64 {
        self.items.len() as u64
    }

    /// Adds an item at the end.
    pub(super) fn push(&mut self, payload: Arc<[u8]>, origin: Option<ItemId>, now: Micros) -> ItemId {
        self.totals.accepted += 1;
        self.insert(payload, origin, now)
    }

    /// Adds an item at the end that is in no total.
    pub(super) fn insert(&mut self, payload: Arc<[u8]>, origin: Option<ItemId>, now: Micros) -> ItemId {
        let id = ItemId::after(self.last, now);
        self.last = id;
        self.bytes = self.bytes.saturating_add(payload.len() as u64);
        self.items.insert(id, StoredItem { payload, origin, delivery: None });
        id
    }

    /// True if an item of this size fits.
    pub(super) fn fits(&self, bytes: u64, capacity: u64, max_bytes: u64) -> bool {
        self.depth() < capacity && self.bytes.saturating_add(bytes) <= max_bytes
    }

    /// Removes an item, delivered or not.
    pub(super) fn remove(&mut self, id: ItemId) -> Option<StoredItem> {
        let item = self.items.remove(&id)?;
        if let Some(delivery) = &item.delivery {
            self.due.remove(&(delivery.due, id));
        }
        self.bytes = self.bytes.saturating_sub(item.payload.len() as u64);
        Some(item)
    }

    /// The last item that was never delivered.
    pub(super) fn newest(&self) -> Option<ItemId> {
        self.new_items().next_back().map(|(id, _)| id)
    }

    /// The first item that was never delivered.
    pub(super) fn first_new(&self) -> Option<ItemId> {
        self.new_items().next().map(|(id, _)| id)
    }
}
