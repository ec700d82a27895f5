//! Places that become free without a worker: items that are too old, and items that are dropped for new ones.
//!
//! New items are those that were never delivered. They come after all others, so they are found without a search.

use std::ops::Bound;

use super::archive::LeftItem;
use super::part::PartState;
use super::stored_item::StoredItem;
use super::{
    AGED_LOOKS, BoundedQueue, DROPPED_AT_ONCE, DUE_LOOKS, ItemFate, ItemId, MAX_PAYLOAD, MAX_TAKE_BYTES,
    QueueNumbers, QueuePart, QueueTime,
};

impl PartState {
    /// Items that were never delivered, the oldest first.
    pub(super) fn new_items(&self) -> impl DoubleEndedIterator<Item = (ItemId, &StoredItem)> {
        let rest = (Bound::Excluded(self.delivered), Bound::Unbounded);
        self.items.range(rest).map(|(id, item)| (*id, item))
    }
}

impl BoundedQueue {
    /// Removes items older than `max_age` that no worker has, while the dead letters have room. True if more may be
    /// left.
    pub(super) fn age_out(&mut self, rule: &QueueNumbers, part: QueuePart, now: QueueTime) -> bool {
        let Some(max_age) = rule.max_age.filter(|_| part == QueuePart::Main) else { return false };
        let is_aged = |id: ItemId| id.age(now.wall) > max_age;
        let due = self.due_now(part, now.steady).into_iter().map(|(_, id)| id);
        let due: Vec<ItemId> = due.filter(|id| is_aged(*id)).collect();
        let mut removed = 0;
        for id in due {
            removed += usize::from(self.remove_aged(rule, id, now));
        }
        let more_due = removed == DUE_LOOKS;
        let (mut looks, mut bytes) = (0, 0);
        while looks < AGED_LOOKS && bytes + MAX_PAYLOAD <= MAX_TAKE_BYTES {
            let first = self.main.new_items().next().map(|(id, item)| (id, item.payload.len()));
            let Some((id, size)) = first.filter(|(id, _)| is_aged(*id)) else { return more_due };
            if !self.remove_aged(rule, id, now) {
                return more_due;
            }
            (looks, bytes) = (looks + 1, bytes + size);
        }
        true
    }

    /// Moves an item to the dead letters, or drops it where there are none. False if they are full.
    fn remove_aged(&mut self, rule: &QueueNumbers, id: ItemId, now: QueueTime) -> bool {
        let has_letters = rule.max_deliveries.is_some();
        if has_letters && !self.has_place_for_letter(rule, id) {
            return false;
        }
        let Some(item) = self.main.remove(id) else { return false };
        self.main.totals.aged_out += 1;
        if has_letters {
            self.add_dead_letter(rule, (id, item), now);
        } else {
            let left = LeftItem { id, item: &item, fate: ItemFate::AgedOut, text: "" };
            self.main.outcomes.push(&left, rule, now);
        }
        true
    }

    fn has_place_for_letter(&self, rule: &QueueNumbers, id: ItemId) -> bool {
        let size = self.main.items.get(&id).map(|item| item.payload.len() as u64);
        size.is_some_and(|size| self.dead.fits(size, rule.capacity, rule.max_bytes))
    }

    /// Drops items that no worker has, until the new items and bytes fit: first new ones, then due ones. Drops none if
    /// that is not enough. Returns the number of dropped items.
    pub(super) fn drop_oldest(
        &mut self,
        rule: &QueueNumbers,
        (items, bytes): (u64, u64),
        now: QueueTime,
    ) -> Option<u64> {
        let (mut places, mut room) = (self.main.depth(), self.main.bytes);
        let mut dropped = Vec::new();
        let new = self.main.new_items().map(|(id, item)| (id, item.payload.len()));
        let due = self.main.due.iter().take_while(|(due, _)| *due <= now.steady);
        let due = due.filter_map(|(_, id)| Some((*id, self.main.items.get(id)?.payload.len())));
        for (id, size) in new.chain(due).take(DROPPED_AT_ONCE) {
            if places + items <= rule.capacity && room + bytes <= rule.max_bytes {
                break;
            }
            (places, room) = (places.saturating_sub(1), room.saturating_sub(size as u64));
            dropped.push(id);
        }
        if places + items > rule.capacity || room + bytes > rule.max_bytes {
            return None;
        }
        for &id in &dropped {
            if let Some(item) = self.main.remove(id) {
                let left = LeftItem { id, item: &item, fate: ItemFate::Dropped, text: "" };
                self.main.outcomes.push(&left, rule, now);
            }
        }
        self.main.totals.dropped += dropped.len() as u64;
        Some(dropped.len() as u64)
    }
}
