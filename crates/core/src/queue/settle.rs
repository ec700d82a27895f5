//! Acks and Nacks of delivered items.

use weir_units::{LATEST, Micros};

use super::{BoundedQueue, ItemId, QueueNumbers, QueuePart, QueueReply, QueueTime};

impl BoundedQueue {
    /// Removes items whose work is done.
    pub(super) fn ack(
        &mut self,
        rule: &QueueNumbers,
        part: QueuePart,
        (ids, outcome): (&[ItemId], &str),
        now: QueueTime,
    ) -> QueueReply {
        let keeps = !outcome.is_empty() && rule.outcomes > Micros::ZERO;
        let (state, mut done) = (self.part_mut(part), Vec::with_capacity(ids.len()));
        for &id in ids {
            let removed = state.remove(id);
            done.push(removed.is_some());
            if let Some((_, record)) = removed {
                state.totals.acked += 1;
                if keeps {
                    state.outcomes.push((id, record.deliveries, &record.taker, outcome), rule, now);
                }
            }
        }
        if keeps && done.contains(&true) {
            state.outcomes.expire(rule, now.steady);
        }
        QueueReply::Settled { done, dead_lettered: 0 }
    }

    /// Lets items be delivered again after a delay, or moves them to the dead letters.
    pub(super) fn nack(
        &mut self,
        rule: &QueueNumbers,
        part: QueuePart,
        (ids, delay): (&[ItemId], Micros),
        now: QueueTime,
    ) -> QueueReply {
        let (mut done, mut dead_lettered) = (Vec::with_capacity(ids.len()), 0);
        let again = Micros(now.steady.0.saturating_add(delay.0)).min(LATEST);
        for &id in ids {
            let state = self.part_mut(part);
            let record = state.items.get_mut(&id).and_then(|item| item.delivery.as_mut());
            done.push(record.is_some());
            let Some(record) = record else { continue };
            state.due.remove(&(record.due, id));
            (record.nacked, record.due) = (true, again);
            state.due.insert((again, id));
            dead_lettered += u64::from(self.bury(rule, part, id, now));
        }
        QueueReply::Settled { done, dead_lettered }
    }
}
