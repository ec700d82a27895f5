//! Operations of operators: browse items, redrive dead letters, purge a queue.
//!
//! Each call looks at no more than [`MAX_ITEMS`](super::MAX_ITEMS) items, and at no more than [`MAX_TAKE_BYTES`] of
//! their payloads. Its answer has the cursor of the next call.

use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use weir_units::Micros;

use super::part::PartState;
use super::stored_item::StoredItem;
use super::{
    BoundedQueue, BrowsedItem, ItemId, MAX_PAYLOAD, MAX_TAKE_BYTES, QueueNumbers, QueuePart, QueueReply,
    QueueTime,
};

/// Progress of a call through the items.
struct PageLook {
    most: usize,
    items: usize,
    bytes: usize,
    last: ItemId,
}

impl PageLook {
    fn after(after: ItemId, most: usize) -> Self {
        Self { most, items: 0, bytes: 0, last: after }
    }

    fn has_place(&self) -> bool {
        self.items < self.most && self.bytes + MAX_PAYLOAD <= MAX_TAKE_BYTES
    }

    fn saw(&mut self, id: ItemId, item: &StoredItem) {
        self.items += 1;
        self.bytes += item.payload.len();
        self.last = id;
    }

    /// Cursor of the next call; `None` at the end of the queue.
    fn next(&self) -> Option<ItemId> {
        (!self.has_place()).then_some(self.last)
    }
}

impl PartState {
    fn after(&self, id: ItemId) -> impl Iterator<Item = (ItemId, &StoredItem)> {
        self.items.range((Bound::Excluded(id), Bound::Unbounded)).map(|(id, item)| (*id, item))
    }
}

impl BoundedQueue {
    /// Shows items in the order of their ids. It changes nothing.
    pub(super) fn browse(
        &self,
        part: QueuePart,
        (after, most): (ItemId, usize),
        now: QueueTime,
    ) -> QueueReply {
        let (mut look, mut items) = (PageLook::after(after, most), Vec::new());
        for (id, item) in self.part(part).after(after) {
            if !look.has_place() {
                break;
            }
            look.saw(id, item);
            items.push(browsed(id, item, now.steady));
        }
        QueueReply::Browsed { items, next: look.next() }
    }

    /// Moves dead letters that no worker has to the end of their queue, while it has room.
    pub(super) fn redrive(
        &mut self,
        rule: &QueueNumbers,
        (after, most): (ItemId, usize),
        now: QueueTime,
    ) -> QueueReply {
        let (mut look, mut moved, mut is_full) = (PageLook::after(after, most), Vec::new(), false);
        let (mut places, mut bytes) = (self.main.depth(), self.main.bytes);
        for (id, item) in self.dead.after(after) {
            if !look.has_place() {
                break;
            }
            let size = item.payload.len() as u64;
            let is_free = item.delivery.as_ref().is_none_or(|record| record.due <= now.steady);
            if is_free {
                is_full = places >= rule.capacity || bytes.saturating_add(size) > rule.max_bytes;
                if is_full {
                    break;
                }
                (places, bytes) = (places + 1, bytes + size);
                moved.push(id);
            }
            look.saw(id, item);
        }
        let next = if is_full { Some(look.last) } else { look.next() };
        let mut items = Vec::with_capacity(moved.len());
        for id in moved {
            if let Some(item) = self.dead.remove(id) {
                items.push(self.main.insert(item.payload, None, now.wall));
                self.main.totals.redriven += 1;
            }
        }
        QueueReply::Redriven { items, next, is_full, dead_depth: self.dead.depth() }
    }

    /// Removes all items, also those that workers have. Totals, outcomes and known ids stay.
    pub(super) fn purge(&mut self, part: QueuePart) -> QueueReply {
        let state = self.part_mut(part);
        let items = mem::take(&mut state.items).len() as u64;
        state.due.clear();
        state.bytes = 0;
        state.totals.purged += items;
        QueueReply::Purged { items }
    }
}

fn browsed(id: ItemId, item: &StoredItem, now: Micros) -> BrowsedItem {
    let delivery = item.delivery.as_ref();
    BrowsedItem {
        id,
        payload: Arc::clone(&item.payload),
        deliveries: delivery.map_or(0, |record| record.deliveries),
        is_nacked: delivery.is_some_and(|record| record.nacked),
        taker: delivery.map(|record| record.taker.clone()),
        due_after: delivery.map(|record| Micros(record.due.0.saturating_sub(now.0))),
        origin: item.origin,
    }
}
