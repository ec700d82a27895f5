//! Deliveries: items that are due again first, then new ones, at the pace at most.

use std::mem;
use std::sync::Arc;

use weir_units::{LATEST, Micros};

use super::archive::LeftItem;
use super::part::PartState;
use super::stored_item::{DeliveryRecord, StoredItem};
use super::{
    BoundedQueue, DUE_LOOKS, DeliveredItem, ItemFate, ItemId, MAX_PAYLOAD, MAX_TAKE_BYTES, QueueKind,
    QueueNumbers, QueueOrder, QueuePart, QueueReply, QueueTime, Redelivery, RedeliveryCause,
};

/// Items that one call delivers.
struct Handing<'a> {
    taker: &'a str,
    token: u64,
    most: usize,
    due: Micros,
    items: Vec<DeliveredItem>,
    bytes: usize,
}

impl BoundedQueue {
    pub(super) fn take(
        &mut self,
        rule: &QueueNumbers,
        part: QueuePart,
        (taker, token, max_items): (&str, u64, usize),
        time: QueueTime,
    ) -> QueueReply {
        let now = time.steady;
        let has_more_aged = self.age_out(rule, part, time);
        let pace = rule.pace.filter(|_| part == QueuePart::Main);
        let drained = pace.map(|pace| self.main.pace.drained(pace, now));
        let wait = pace.zip(drained).map_or(Micros::ZERO, |(pace, drained)| drained.wait(pace));
        let most = match pace {
            None => max_items,
            Some(_) => usize::from(wait == Micros::ZERO).min(max_items),
        };
        // Nothing that is too old is handed out.
        let most = if has_more_aged { 0 } else { most };
        let due = Micros(now.0.saturating_add(rule.visibility.0)).min(LATEST);
        let mut handing = Handing { taker, token, most, due, items: Vec::new(), bytes: 0 };
        let mut dead_lettered = 0;
        for (_, id) in self.due_now(part, now) {
            if self.bury(rule, part, id, time) {
                dead_lettered += 1;
            } else if !handing.has_place() {
                break;
            } else {
                handing.again(self.part_mut(part), id);
            }
        }
        let list = rule.kind == QueueKind::List && part == QueuePart::Main;
        let newest_first = list && rule.order == QueueOrder::Lifo;
        let state = self.part_mut(part);
        while handing.has_place()
            && let Some(id) = if newest_first { state.newest() } else { state.first_new() }
        {
            handing.first(state, id, list);
        }
        if let Some((pace, mut drained)) = pace.zip(drained) {
            let hands = !handing.items.is_empty();
            if hands {
                drained.charge(pace);
            }
            // The drain since then is not written for its own sake.
            if hands || state.pace.is_after(now) {
                state.pace = drained;
            }
        }
        let next_after = if handing.items.is_empty() { next_after(state, wait, now) } else { None };
        QueueReply::Taken { items: handing.items, next_after, dead_lettered }
    }

    pub(super) fn due_now(&self, part: QueuePart, now: Micros) -> Vec<(Micros, ItemId)> {
        let due = self.part(part).due.iter().take_while(|(due, _)| *due <= now);
        due.take(DUE_LOOKS).copied().collect()
    }

    /// Moves an item to the dead letters, if it had its deliveries and there is room.
    pub(super) fn bury(&mut self, rule: &QueueNumbers, part: QueuePart, id: ItemId, now: QueueTime) -> bool {
        let Some(most) = rule.max_deliveries.filter(|_| part == QueuePart::Main) else { return false };
        let Some(item) = self.main.items.get(&id) else { return false };
        let worn = item.delivery.as_ref().is_some_and(|record| record.deliveries >= most);
        if !worn || !self.dead.fits(item.payload.len() as u64, rule.capacity, rule.max_bytes) {
            return false;
        }
        if let Some(item) = self.main.remove(id) {
            self.add_dead_letter(rule, (id, item), now);
        }
        true
    }

    /// Adds an item that was removed to the dead letters.
    pub(super) fn add_dead_letter(
        &mut self,
        rule: &QueueNumbers,
        (id, item): (ItemId, StoredItem),
        now: QueueTime,
    ) {
        let left = LeftItem { id, item: &item, fate: ItemFate::DeadLettered, text: "" };
        self.main.outcomes.push(&left, rule, now);
        self.dead.push(item.payload, Some(id), now.wall);
        self.main.totals.dead_lettered += 1;
    }
}

impl Handing<'_> {
    fn has_place(&self) -> bool {
        self.items.len() < self.most && self.bytes + MAX_PAYLOAD <= MAX_TAKE_BYTES
    }

    /// Delivers an item that was delivered before.
    fn again(&mut self, state: &mut PartState, id: ItemId) {
        let Some(item) = state.items.get_mut(&id) else { return };
        let Some(record) = &mut item.delivery else { return };
        state.due.remove(&(record.due, id));
        let cause = if record.nacked { RedeliveryCause::Nack } else { RedeliveryCause::Visibility };
        match cause {
            RedeliveryCause::Nack => state.totals.redelivered_nack += 1,
            RedeliveryCause::Visibility => state.totals.redelivered_visibility += 1,
        }
        record.deliveries += 1;
        (record.nacked, record.due, record.token) = (false, self.due, self.token);
        let taker = mem::replace(&mut record.taker, self.taker.into());
        state.due.insert((self.due, id));
        self.bytes += item.payload.len();
        self.items.push(DeliveredItem {
            id,
            payload: Arc::clone(&item.payload),
            deliveries: record.deliveries,
            again: Some(Redelivery { cause, taker }),
            origin: item.origin,
        });
    }

    /// Delivers an item for the first time.
    fn first(&mut self, state: &mut PartState, id: ItemId, list: bool) {
        // What a list has handed out is gone, and older items may be left.
        if !list {
            state.delivered = id;
        }
        state.totals.first_deliveries += 1;
        let Some(item) = state.items.get_mut(&id) else { return };
        let (payload, origin) = (Arc::clone(&item.payload), item.origin);
        let taker = self.taker.into();
        item.delivery =
            Some(DeliveryRecord { deliveries: 1, due: self.due, nacked: false, taker, token: self.token });
        state.due.insert((self.due, id));
        if list {
            state.remove(id);
        }
        self.bytes += payload.len();
        self.items.push(DeliveredItem { id, payload, deliveries: 1, again: None, origin });
    }
}

/// Time until an item of the queue may be delivered.
fn next_after(state: &PartState, wait: Micros, now: Micros) -> Option<Micros> {
    if state.first_new().is_some() {
        return Some(wait);
    }
    state.due.first().map(|(due, _)| Micros(due.0.saturating_sub(now.0)).max(wait))
}
