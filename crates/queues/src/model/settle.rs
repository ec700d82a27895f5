//! Acks, Nacks and extensions of delivered items.
//!
//! After its visibility an item can be with another worker. So each call names the delivery by its token.

use std::mem;

use weir_units::{LATEST, Micros};

use super::archive::LeftItem;
use super::call::Deliveries;
use super::part::PartState;
use super::stored_item::DeliveryRecord;
use super::{BoundedQueue, ItemFate, ItemId, QueueNumbers, QueuePart, QueueReply, QueueTime};

impl PartState {
    /// The last delivery of an item, if it is the one with this token.
    fn delivery(&mut self, id: ItemId, token: u64) -> Option<&mut DeliveryRecord> {
        let record = self.items.get_mut(&id)?.delivery.as_mut()?;
        (token == 0 || token == record.token).then_some(record)
    }
}

impl BoundedQueue {
    /// Removes items whose work is done.
    pub(super) fn ack(
        &mut self,
        rule: &QueueNumbers,
        part: QueuePart,
        (items, outcome): (Deliveries<'_>, &str),
        now: QueueTime,
    ) -> QueueReply {
        let (state, mut done) = (self.part_mut(part), Vec::with_capacity(items.ids.len()));
        for (id, token) in items.each() {
            let removed = state.delivery(id, token).is_some().then(|| state.remove(id)).flatten();
            done.push(removed.is_some());
            if let Some(item) = &removed {
                state.totals.acked += 1;
                let left = LeftItem { id, item, fate: ItemFate::Acked, text: outcome };
                state.outcomes.push(&left, rule, now);
            }
        }
        QueueReply::Settled { done, dead_lettered: 0 }
    }

    /// Lets items be delivered again after a delay, or moves them to the dead letters.
    pub(super) fn nack(
        &mut self,
        rule: &QueueNumbers,
        part: QueuePart,
        (items, delay): (Deliveries<'_>, Micros),
        now: QueueTime,
    ) -> QueueReply {
        let (mut done, mut dead_lettered) = (Vec::with_capacity(items.ids.len()), 0);
        let again = Micros(now.steady.0.saturating_add(delay.0)).min(LATEST);
        for (id, token) in items.each() {
            let state = self.part_mut(part);
            let record = state.delivery(id, token);
            done.push(record.is_some());
            let Some(record) = record else { continue };
            record.nacked = true;
            let before = mem::replace(&mut record.due, again);
            state.due.remove(&(before, id));
            state.due.insert((again, id));
            dead_lettered += u64::from(self.bury(rule, part, id, now));
        }
        QueueReply::Settled { done, dead_lettered }
    }

    /// Lets items be delivered again only after a time from now.
    pub(super) fn extend(
        &mut self,
        part: QueuePart,
        (items, visibility): (Deliveries<'_>, Micros),
        now: QueueTime,
    ) -> QueueReply {
        let (state, mut done) = (self.part_mut(part), Vec::with_capacity(items.ids.len()));
        let again = Micros(now.steady.0.saturating_add(visibility.0)).min(LATEST);
        for (id, token) in items.each() {
            let before = state.delivery(id, token).map(|record| mem::replace(&mut record.due, again));
            done.push(before.is_some());
            if let Some(before) = before {
                state.due.remove(&(before, id));
                state.due.insert((again, id));
            }
        }
        QueueReply::Settled { done, dead_lettered: 0 }
    }
}
