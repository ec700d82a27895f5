//! Index from a key's hash to its slot: open addressing, 4 bytes an entry.
//!
//! A general hash table leaves tombstones and doubles to be rid of them, which a table at the edge of its budget
//! cannot afford. Here a removal closes the gap at once (backward shift), so a full table keeps its size however many
//! keys pass through it.

/// Number of an entry; its upper byte is free for a tag.
pub(crate) type Slot = u32;

pub(super) const MAX_SLOTS: usize = (1 << 24) - 1;

pub(super) const SLOT_BITS: u32 = 24;
const EMPTY: u32 = u32::MAX;

/// A slot and 8 bits of the key's hash, which filter out most other keys. As bytes, which need no alignment: an
/// allocator might otherwise take the next larger class of blocks.
type IndexPlace = [u8; size_of::<u32>()];

/// Linear probing over a power of two of places, at most three quarters full.
#[derive(Default)]
pub(crate) struct Index {
    places: Box<[IndexPlace]>,
    len: usize,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(Slot) -> bool) -> Option<Slot> {
        self.place_of(hash, is_it).map(|place| slot_of(self.at(place)))
    }

    pub(super) fn guess(&self, hash: u64) -> Option<Slot> {
        self.find(hash, |_| true)
    }

    /// Prefetches the first place of this hash.
    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u32 {
        self.places.get(self.home(hash)).map_or(EMPTY, |&place| u32::from_ne_bytes(place))
    }

    /// Bytes needed before `count` more keys fit; 0 if they fit already.
    pub(super) fn growth(&self, count: usize) -> usize {
        let wanted = places_for(self.len + count);
        wanted.saturating_sub(self.places.len()) * size_of::<IndexPlace>()
    }

    /// Makes room for `count` more keys; `hash_of` returns the hash of the key in a slot.
    pub(crate) fn grow(&mut self, count: usize, hash_of: impl Fn(Slot) -> u64) {
        let wanted = places_for(self.len + count);
        if wanted <= self.places.len() {
            return;
        }
        let places = vec![EMPTY.to_ne_bytes(); wanted].into_boxed_slice();
        let old = std::mem::replace(&mut self.places, places);
        self.len = 0;
        for entry in old.into_iter().map(u32::from_ne_bytes).filter(|&entry| entry != EMPTY) {
            let slot = slot_of(entry);
            self.insert(hash_of(slot), slot);
        }
    }

    /// Adds a new key; [`Index::grow`] has made room.
    pub(crate) fn insert(&mut self, hash: u64, slot: Slot) {
        let mut place = self.home(hash);
        while self.at(place) != EMPTY {
            place = self.next(place);
        }
        self.put(place, tag_of(hash) | slot);
        self.len += 1;
    }

    /// Removes the key in `slot`, and shifts later ones back towards their home.
    pub(crate) fn remove(&mut self, hash: u64, slot: Slot, hash_of: impl Fn(Slot) -> u64) {
        let Some(mut gap) = self.place_of(hash, |other| other == slot) else { return };
        let mut place = self.next(gap);
        while self.at(place) != EMPTY {
            let entry = self.at(place);
            let home = self.home(hash_of(slot_of(entry)));
            if self.distance(home, place) >= self.distance(gap, place) {
                self.put(gap, entry);
                gap = place;
            }
            place = self.next(place);
        }
        self.put(gap, EMPTY);
        self.len -= 1;
    }

    fn place_of(&self, hash: u64, is_it: impl Fn(Slot) -> bool) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let tag = tag_of(hash);
        let mut place = self.home(hash);
        while self.at(place) != EMPTY {
            let entry = self.at(place);
            if entry & !SLOT_MASK == tag && is_it(slot_of(entry)) {
                return Some(place);
            }
            place = self.next(place);
        }
        None
    }

    fn at(&self, place: usize) -> u32 {
        u32::from_ne_bytes(self.places[place])
    }

    fn put(&mut self, place: usize, entry: u32) {
        self.places[place] = entry.to_ne_bytes();
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & self.places.len().wrapping_sub(1)
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }
}

const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

/// The slot of an entry, without its upper byte.
pub(super) fn slot_of(entry: u32) -> Slot {
    entry & SLOT_MASK
}

/// The hash's upper byte; its lower bits choose the home.
fn tag_of(hash: u64) -> u32 {
    (hash >> 56) as u32 * (1 << SLOT_BITS)
}

fn places_for(keys: usize) -> usize {
    (keys * 4).div_ceil(3).next_power_of_two().max(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Few homes, many collisions, random order: the gap-closing removal loses no entry.
    #[test]
    fn agrees_with_a_map_through_inserts_and_removes() {
        let hashes: Vec<u64> = (0..400_u64).map(|i| ((i * i * 7919) % 61) | ((i % 3) << 56)).collect();
        let hash_of = |slot: Slot| hashes[slot as usize];
        let (mut index, mut map) = (Index::default(), HashMap::new());
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let slot = (random >> 33) as u32 % 400;
            if map.remove(&slot).is_some() {
                index.remove(hash_of(slot), slot, hash_of);
            } else {
                index.grow(1, hash_of);
                index.insert(hash_of(slot), slot);
                map.insert(slot, ());
            }
            let probe = (random >> 13) as u32 % 400;
            let found = index.find(hash_of(probe), |slot| slot == probe);
            assert_eq!(found.is_some(), map.contains_key(&probe));
            assert_eq!(index.len(), map.len());
        }
    }
}
