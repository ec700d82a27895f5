//! Records of a queue beside its items: ids of accepted items, and outcomes.

use std::collections::{HashMap, VecDeque};

use weir_units::Micros;

use super::{
    ItemId, MAX_KNOWN_IDS, OUTCOME_LOOKS, OUTCOMES_PER_PLACE, OutcomeRecord, OutcomeSearch, QueueNumbers,
    QueueTime,
};

/// How long an expired id is kept, as in Redis: a clock that steps back by less still finds it.
const EXPIRED_KEPT: Micros = Micros::from_secs(60);

/// Ids under which items were accepted, until they expire.
#[derive(Debug, Default)]
pub(super) struct KnownIds {
    by_id: HashMap<Box<str>, KnownId>,
    /// In order of arrival, which is the order of expiry except for steps of the clock.
    order: VecDeque<(Box<str>, Micros)>,
}

#[derive(Debug)]
struct KnownId {
    item: ItemId,
    /// Digest of its payload; 0 for none.
    digest: u128,
    until: Micros,
}

impl KnownIds {
    /// True if `id` is that of an item whose payload has another digest. 0 is not compared.
    pub(super) fn has_other(&self, id: &str, digest: u128, now: Micros) -> bool {
        let known = self.by_id.get(id).filter(|known| now < known.until);
        known.is_some_and(|known| digest != 0 && known.digest != 0 && digest != known.digest)
    }

    /// The item that was accepted under `id`.
    pub(super) fn get(&self, id: &str, now: Micros) -> Option<ItemId> {
        self.by_id.get(id).filter(|known| now < known.until).map(|known| known.item)
    }

    pub(super) fn insert(&mut self, id: &str, (item, digest): (ItemId, u128), until: Micros) {
        self.by_id.insert(id.into(), KnownId { item, digest, until });
        self.order.push_back((id.into(), until));
    }

    /// True if so many more ids fit, after expired ones are dropped.
    pub(super) fn has_place(&mut self, more: usize, now: Micros, capacity: u64) -> bool {
        let places = usize::try_from(capacity.saturating_mul(OUTCOMES_PER_PLACE)).unwrap_or(usize::MAX);
        let places = places.max(MAX_KNOWN_IDS);
        self.drop_expired(Micros(now.0.saturating_sub(EXPIRED_KEPT.0)));
        if self.order.len().saturating_add(more) > places {
            self.drop_expired(now);
        }
        self.order.len().saturating_add(more) <= places
    }

    /// Drops what had expired at a time.
    fn drop_expired(&mut self, at: Micros) {
        while let Some((id, until)) = self.order.front().filter(|(_, until)| *until <= at) {
            if self.by_id.get(id).is_some_and(|known| known.until == *until) {
                self.by_id.remove(id);
            }
            self.order.pop_front();
        }
    }
}

/// Outcomes of items, kept for a time.
#[derive(Debug, Default)]
pub(super) struct OutcomeLog {
    /// Each with the millisecond of the steady clock at which it came.
    kept: VecDeque<(u64, OutcomeRecord)>,
    last: ItemId,
    last_came: u64,
}

impl OutcomeLog {
    /// Remembers an outcome.
    pub(super) fn push(
        &mut self,
        (item, deliveries, taker, text): (ItemId, u64, &str, &str),
        rule: &QueueNumbers,
        now: QueueTime,
    ) {
        let at = ItemId::after(self.last, now.wall);
        self.last = at;
        let record = OutcomeRecord { at, item, deliveries, taker: taker.into(), text: text.into() };
        // Monotonic, as ids are.
        self.last_came = self.last_came.max(now.steady.0 / 1000);
        self.kept.push_back((self.last_came, record));
        while self.kept.len() as u64 > rule.capacity.saturating_mul(OUTCOMES_PER_PLACE) {
            self.kept.pop_front();
        }
    }

    /// Drops those that are too old.
    pub(super) fn expire(&mut self, rule: &QueueNumbers, now: Micros) {
        let oldest = now.0.saturating_sub(rule.outcomes.0) / 1000;
        while self.kept.front().is_some_and(|(came, _)| *came < oldest) {
            self.kept.pop_front();
        }
    }

    /// Outcomes that are looked for, and before which one the next search begins. It looks at no more than
    /// [`OUTCOME_LOOKS`].
    pub(super) fn search(&self, search: &OutcomeSearch) -> (Vec<OutcomeRecord>, Option<ItemId>) {
        let OutcomeSearch { item, from_ms, before, max_items } = *search;
        let (mut found, mut looks, mut last) = (Vec::new(), 0, before);
        let has_place = |found: &Vec<_>, looks| found.len() < max_items && looks < OUTCOME_LOOKS;
        let newest =
            self.kept.iter().rev().map(|(_, record)| record).skip_while(|record| record.at >= before);
        for record in newest.take_while(|record| record.at.ms >= from_ms) {
            if !has_place(&found, looks) {
                break;
            }
            (looks, last) = (looks + 1, record.at);
            if item.is_none_or(|item| item == record.item) {
                found.push(record.clone());
            }
        }
        let next = (!has_place(&found, looks)).then_some(last);
        (found, next)
    }

    /// The number of outcomes, and the newest ones.
    pub(super) fn newest(&self, most: usize) -> (u64, Vec<OutcomeRecord>) {
        (
            self.kept.len() as u64,
            self.kept.iter().rev().take(most).map(|(_, record)| record.clone()).collect(),
        )
    }
}
