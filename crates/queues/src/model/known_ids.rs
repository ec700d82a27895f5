//! Ids of accepted items.

use std::collections::{HashMap, VecDeque};

use weir_units::Micros;

use super::{IDS_PER_PLACE, ItemId, MAX_KNOWN_IDS};

/// Time for which an expired id is kept, as in Redis: a clock that steps back by less still finds it.
const EXPIRED_KEPT: Micros = Micros::from_secs(60);

/// Ids under which items were accepted, until they expire.
#[derive(Debug, Default)]
pub(super) struct KnownIds {
    by_id: HashMap<Box<str>, KnownId>,
    /// Ids in order of arrival, which is the order of expiry except for steps of the clock.
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

    /// True if `more` ids fit, after expired ones are dropped.
    pub(super) fn has_place(&mut self, more: usize, now: Micros, capacity: u64) -> bool {
        let places = usize::try_from(capacity.saturating_mul(IDS_PER_PLACE)).unwrap_or(usize::MAX);
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
