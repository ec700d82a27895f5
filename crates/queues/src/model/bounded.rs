//! A queue with its dead letters, as a pure state machine.

use super::call::Deliveries;
use super::known_ids::KnownIds;
use super::part::PartState;
use super::{QueueAnswer, QueueNumbers, QueueOp, QueuePart, QueueReply, QueueStats, QueueTime};

/// State of a queue and its dead letters.
#[derive(Debug, Default)]
pub struct BoundedQueue {
    pub(super) main: PartState,
    pub(super) dead: PartState,
    pub(super) ids: KnownIds,
}

impl BoundedQueue {
    /// Executes an operation at `now`. Only the queue itself adds dead letters, which are not redriven to themselves, and a
    /// list has no Acks or Nacks: such calls change nothing.
    pub fn call(
        &mut self,
        rule: &QueueNumbers,
        part: QueuePart,
        op: &QueueOp<'_>,
        now: impl Into<QueueTime>,
    ) -> QueueAnswer {
        let now = now.into();
        let aged_out = self.main.totals.aged_out;
        let reply = match *op {
            QueueOp::Enqueue { items } => self.enqueue(rule, items, now),
            QueueOp::Take { taker, max_items, token } => {
                self.take(rule, part, (taker, token, max_items), now)
            }
            QueueOp::Ack { ids, tokens, outcome } => {
                self.ack(rule, part, (Deliveries { ids, tokens }, outcome), now)
            }
            QueueOp::Nack { ids, tokens, delay } => {
                self.nack(rule, part, (Deliveries { ids, tokens }, delay), now)
            }
            QueueOp::Extend { ids, tokens, visibility } => {
                self.extend(part, (Deliveries { ids, tokens }, visibility), now)
            }
            QueueOp::Browse { after, max_items } => self.browse(part, (after, max_items), now),
            QueueOp::Redrive { after, max_items } if part == QueuePart::Main => {
                self.redrive(rule, (after, max_items), now)
            }
            QueueOp::Redrive { .. } => QueueReply::Redriven {
                items: Vec::new(),
                next: None,
                is_full: false,
                dead_depth: self.dead.depth(),
            },
            QueueOp::Purge => self.purge(part),
            QueueOp::Outcomes(search) => {
                let outcomes = &mut self.part_mut(part).outcomes;
                outcomes.expire(rule, now.steady);
                let (found, totals, next) = outcomes.search(&search);
                QueueReply::Outcomes { found, totals, next }
            }
            QueueOp::Stats { outcomes } => QueueReply::Stats(self.stats(rule, part, outcomes, now)),
        };
        let aged_out = self.main.totals.aged_out - aged_out;
        QueueAnswer { depth: self.part(part).depth(), aged_out, reply }
    }

    pub(super) fn part(&self, part: QueuePart) -> &PartState {
        match part {
            QueuePart::Main => &self.main,
            QueuePart::Dead => &self.dead,
        }
    }

    pub(super) fn part_mut(&mut self, part: QueuePart) -> &mut PartState {
        match part {
            QueuePart::Main => &mut self.main,
            QueuePart::Dead => &mut self.dead,
        }
    }

    fn stats(&mut self, rule: &QueueNumbers, part: QueuePart, shown: usize, now: QueueTime) -> QueueStats {
        let dead_depth = self.dead.depth();
        let PartState { items, due, bytes, totals, outcomes, .. } = self.part_mut(part);
        outcomes.expire(rule, now.steady);
        let (kept, newest) = outcomes.newest(shown);
        QueueStats {
            unacked: due.len() as u64,
            bytes: *bytes,
            dead_depth,
            oldest_age: items.keys().next().map(|id| id.age(now.wall)),
            totals: *totals,
            outcomes: kept,
            newest,
        }
    }
}
