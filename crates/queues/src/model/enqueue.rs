//! Putting items into a queue.

use weir_units::Micros;

use super::{BoundedQueue, FullQueue, NewItem, QueueNumbers, QueuePart, QueueRefusal, QueueReply, QueueTime};

impl BoundedQueue {
    /// Adds all items that are not known by their ids, or none.
    pub(super) fn enqueue(
        &mut self,
        rule: &QueueNumbers,
        items: &[NewItem<'_>],
        now: QueueTime,
    ) -> QueueReply {
        let QueueTime { steady, wall } = now;
        if let Some(place) = items.iter().position(|item| self.ids.has_other(item.id, item.digest, steady)) {
            return QueueReply::Refused(QueueRefusal::OtherPayload(place as u64));
        }
        let known =
            |item: &NewItem<'_>| (!item.id.is_empty()).then(|| self.ids.get(item.id, steady)).flatten();
        let known: Vec<_> = items.iter().map(known).collect();
        let fresh = || items.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(item, _)| item);
        let (added, named) = (fresh().count() as u64, fresh().filter(|item| !item.id.is_empty()).count());
        let bytes: u64 = fresh().map(|item| item.payload.len() as u64).sum();
        if added > rule.capacity || bytes > rule.max_bytes {
            return QueueReply::Refused(QueueRefusal::Never);
        }
        let has_ids = added == 0 || self.ids.has_place(named, steady, rule.capacity);
        let Some(dropped) = has_ids.then(|| self.make_room(rule, (added, bytes), now)).flatten() else {
            return QueueReply::Refused(QueueRefusal::Full);
        };
        let mut ids = Vec::with_capacity(items.len());
        for (item, known) in items.iter().zip(known) {
            let id = known.unwrap_or_else(|| self.main.push(item.payload.into(), None, wall));
            if known.is_none() && !item.id.is_empty() {
                let until = Micros(steady.0.saturating_add(rule.visibility.0));
                self.ids.insert(item.id, (id, item.digest), until);
            }
            ids.push(id);
        }
        QueueReply::Accepted { ids, added, dropped }
    }

    /// Makes room for items and bytes, as the rule allows. Returns the number of dropped items; `None` without room.
    fn make_room(&mut self, rule: &QueueNumbers, new: (u64, u64), now: QueueTime) -> Option<u64> {
        let (added, bytes) = new;
        let fits = |queue: &Self| {
            let main = &queue.main;
            added == 0 || main.depth() + added <= rule.capacity && main.bytes + bytes <= rule.max_bytes
        };
        if fits(self) {
            return Some(0);
        }
        self.age_out(rule, QueuePart::Main, now);
        match rule.when_full {
            _ if fits(self) => Some(0),
            FullQueue::Refuse => None,
            FullQueue::DropOldest => self.drop_oldest(rule, new, now),
        }
    }
}
