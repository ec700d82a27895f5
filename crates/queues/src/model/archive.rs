//! The archive of a queue: what became of its items, for a time.

use std::collections::VecDeque;

use sha1_smol::Sha1;
use weir_units::Micros;

use super::stored_item::StoredItem;
use super::{
    ArchiveRule, ItemFate, ItemId, KeptPayload, OUTCOMES_OVER, OutcomeRecord, OutcomeSearch, OutcomeTotals,
    PAYLOAD_HEAD, PayloadRule, QueueKind, QueueNumbers, QueueTime,
};

/// Outcomes of items, in the order in which the items left.
#[derive(Debug, Default)]
pub(super) struct Archive {
    /// Records, each with the millisecond of the steady clock at which it was added.
    kept: VecDeque<(u64, OutcomeRecord)>,
    last: ItemId,
    last_came: u64,
}

/// An item that has left its queue.
pub(super) struct LeftItem<'a> {
    pub(super) id: ItemId,
    pub(super) item: &'a StoredItem,
    pub(super) fate: ItemFate,
    /// The text of its Ack.
    pub(super) text: &'a str,
}

impl Archive {
    /// Records the outcome of an item. Lists have no archive: their items have no outcomes.
    pub(super) fn push(&mut self, left: &LeftItem<'_>, rule: &QueueNumbers, now: QueueTime) {
        if rule.outcomes.keep == Micros::ZERO || rule.kind == QueueKind::List {
            return;
        }
        let LeftItem { id, item, fate, text } = *left;
        let delivery = item.delivery.as_ref();
        self.last = ItemId::after(self.last, now.wall);
        let record = OutcomeRecord {
            at: self.last,
            item: id,
            fate,
            size: item.payload.len() as u64,
            deliveries: delivery.map_or(0, |delivery| delivery.deliveries),
            taker: delivery.map_or_else(Box::default, |delivery| delivery.taker.clone()),
            text: text.into(),
            payload: rule.outcomes.kept(&item.payload),
        };
        // Monotonic, as ids are.
        self.last_came = self.last_came.max(now.steady.0 / 1000);
        self.kept.push_back((self.last_came, record));
        if self.kept.len() as u64 > rule.outcomes.max.saturating_add(OUTCOMES_OVER) {
            self.trim(rule.outcomes.max);
        }
    }

    /// Drops the oldest records until at most `max` are left.
    fn trim(&mut self, max: u64) {
        while self.kept.len() as u64 > max {
            self.kept.pop_front();
        }
    }

    /// Drops those that are too many or too old. Each call that reads outcomes does so first.
    pub(super) fn expire(&mut self, rule: &QueueNumbers, now: Micros) {
        self.trim(rule.outcomes.max);
        let oldest = now.0.saturating_sub(rule.outcomes.keep.0) / 1000;
        while self.kept.front().is_some_and(|(came, _)| *came < oldest) {
            self.kept.pop_front();
        }
    }

    /// Searches outcomes, the newest first. Returns the outcomes, their totals, and the cursor of the next search.
    /// Reads no more than [`OUTCOME_LOOKS`](super::OUTCOME_LOOKS) records.
    pub(super) fn search(
        &self,
        search: &OutcomeSearch<'_>,
    ) -> (Vec<OutcomeRecord>, OutcomeTotals, Option<ItemId>) {
        let (mut found, mut shown, mut totals) = (0, Vec::new(), OutcomeTotals::default());
        let (mut looked_at, mut last) = (0, search.before);
        let end = self.kept.partition_point(|(_, record)| record.at < search.before);
        let newest = self.kept.range(..end).rev().map(|(_, record)| record);
        for record in newest.take_while(|record| record.at.ms >= search.from_ms) {
            if !search.has_place(found, looked_at) {
                break;
            }
            (looked_at, last) = (looked_at + 1, record.at);
            if search.matches(record) {
                found += 1;
                totals.count(record.fate);
                shown.extend((search.max_items > 0).then(|| record.clone()));
            }
        }
        let next = (!search.has_place(found, looked_at)).then_some(last);
        (shown, totals, next)
    }

    /// The number of outcomes, and the newest ones.
    pub(super) fn newest(&self, most: usize) -> (u64, Vec<OutcomeRecord>) {
        let newest = self.kept.iter().rev().take(most).map(|(_, record)| record.clone());
        (self.kept.len() as u64, newest.collect())
    }
}

impl ArchiveRule {
    /// The part of a payload that is kept.
    fn kept(&self, payload: &[u8]) -> Option<KeptPayload> {
        match self.payload {
            PayloadRule::None => None,
            PayloadRule::Digest => Some(KeptPayload::Digest(Sha1::from(payload).digest().to_string().into())),
            PayloadRule::Head => {
                Some(KeptPayload::Head(payload.iter().take(PAYLOAD_HEAD).copied().collect()))
            }
        }
    }
}
