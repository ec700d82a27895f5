//! A part of the table: its keys in one list, by linear probing, at most three quarters full.
//!
//! A general hash table has its bytes of control apart from the entries: two cache lines for each answer, which miss where
//! keys are many. Here it is one. A removal closes the gap at once (backward shift), so a full part keeps its size however
//! many keys pass through it.

use super::{KnownKey, Use};

pub(super) const PLACE_BYTES: usize = size_of::<UsePlace>();

/// Entries that a new key searches for one to evict.
const LOOKS: usize = 64;

/// An entry, or none. It does not lie in two cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct UsePlace {
    key: KnownKey,
    used: u64,
    /// [`Use::until`] above one bit, which marks an entry of which an answer spoke since the hand passed; 0 without an entry.
    until: u64,
}

pub(super) struct KnownPart {
    places: Box<[UsePlace]>,
    len: usize,
    /// The next entry to go, if it has no mark.
    hand: usize,
    most: usize,
}

impl UsePlace {
    const EMPTY: Self = Self { key: KnownKey(0), used: 0, until: 0 };
    const MARK: u64 = 1;

    fn marked(key: KnownKey, Use { used, until }: Use) -> Self {
        Self { key, used, until: until.max(1) << 1 | Self::MARK }
    }

    fn is_empty(&self) -> bool {
        self.until == 0
    }

    fn known(&self) -> Use {
        Use { used: self.used, until: self.until >> 1 }
    }
}

impl KnownPart {
    /// A part of at most so many places.
    pub(super) fn new(most: usize) -> Self {
        // One place of two stays empty, so that a search ends.
        Self { places: Box::default(), len: 0, hand: 0, most: most.max(2) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: KnownKey) -> Option<Use> {
        self.find(key).map(|place| self.places[place].known())
    }

    /// Keeps what is known of a key. One with an old answer may go for it.
    pub(super) fn learn(&mut self, key: KnownKey, known: Use) {
        let entry = UsePlace::marked(key, known);
        if let Some(place) = self.find(key) {
            self.places[place] = entry;
            return;
        }
        if self.len >= room(self.places.len()) {
            if self.places.len() < self.most { self.grow() } else { self.drop_an_old_one() }
        }
        self.put(entry);
    }

    pub(super) fn remove(&mut self, key: KnownKey) -> Option<Use> {
        let place = self.find(key)?;
        let known = self.places[place].known();
        self.remove_at(place);
        Some(known)
    }

    fn find(&self, key: KnownKey) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let mut place = self.home(key);
        loop {
            let entry = &self.places[place];
            if entry.is_empty() {
                return None;
            }
            if entry.key == key {
                return Some(place);
            }
            place = self.after(place);
        }
    }

    /// Puts an entry, whose key is not there, into the first empty place from its home.
    fn put(&mut self, entry: UsePlace) {
        let mut place = self.home(entry.key);
        while !self.places[place].is_empty() {
            place = self.after(place);
        }
        self.places[place] = entry;
        self.len += 1;
    }

    fn grow(&mut self) {
        let count = (self.places.len() * 3 / 2).max(8).min(self.most);
        let places = std::mem::replace(&mut self.places, vec![UsePlace::EMPTY; count].into_boxed_slice());
        (self.len, self.hand) = (0, 0);
        places.into_iter().filter(|entry| !entry.is_empty()).for_each(|entry| self.put(entry));
    }

    /// Moves the hand of a clock past marks, which it takes away, and removes the first entry without one. There is one.
    fn drop_an_old_one(&mut self) {
        let mut looks = 0;
        loop {
            let (place, next) = (self.hand, self.after(self.hand));
            let entry = &mut self.places[place];
            if !entry.is_empty() {
                looks += 1;
                if entry.until & UsePlace::MARK == 0 || looks >= LOOKS {
                    return self.remove_at(place);
                }
                entry.until &= !UsePlace::MARK;
            }
            self.hand = next;
        }
    }

    /// Removes the entry of a place. Those after it move up, unless they are at home.
    fn remove_at(&mut self, mut gap: usize) {
        let mut place = gap;
        loop {
            place = self.after(place);
            let entry = self.places[place];
            if entry.is_empty() {
                break;
            }
            if self.distance(self.home(entry.key), place) >= self.distance(gap, place) {
                self.places[gap] = entry;
                gap = place;
            }
        }
        self.places[gap] = UsePlace::EMPTY;
        self.len -= 1;
    }

    /// The place at which the search for a key begins.
    fn home(&self, key: KnownKey) -> usize {
        // Its share of all hashes: places need not be a power of two.
        ((u64::from(key.hash()) * self.places.len() as u64) >> 32) as usize
    }

    fn after(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    /// Steps from one place to another one.
    fn distance(&self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.places.len() - from }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.places.len() * PLACE_BYTES
    }
}

/// Returns the number of entries for which `places` have room.
fn room(places: usize) -> usize {
    places - places.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const fn used(used: u64) -> Use {
        Use { used, until: 100 }
    }

    /// Spread over the places.
    fn key(number: u64) -> KnownKey {
        KnownKey(u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32))
    }

    fn known(part: &KnownPart, keys: impl Iterator<Item = u64>) -> Vec<u64> {
        keys.filter(|number| part.get(key(*number)).is_some()).collect()
    }

    /// Keys of a small part come, change and go. It has what was said last of each key that it has, and is full.
    #[test]
    fn what_is_known_of_a_key_is_what_was_said_last() {
        let mut part = KnownPart::new(14);
        let mut last: HashMap<KnownKey, Use> = HashMap::new();
        let mut random = 1_u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Some have one home.
            let key = KnownKey(key((random >> 33) % 17 / 2).0 | u128::from((random >> 33) % 2) << 70);
            if random >> 60 == 0 {
                let (known, last) = (part.remove(key), last.remove(&key));
                assert!(known.is_none() || known == last);
            } else {
                part.learn(key, used(step));
                last.insert(key, used(step));
            }
            assert_eq!(last.keys().filter(|key| part.get(**key).is_some()).count(), part.len());
            assert!(last.iter().all(|(key, last)| part.get(*key).is_none_or(|known| known == *last)));
        }
        assert!(part.len() >= 8 && part.len() <= room(14), "{}", part.len());
        assert_eq!(part.bytes(), 14 * PLACE_BYTES);
    }

    #[test]
    fn an_old_key_goes_before_those_of_which_the_store_spoke_again() {
        let mut part = KnownPart::new(400);
        (0..300).for_each(|number| part.learn(key(number), used(1)));
        assert_eq!(known(&part, 0..300).len(), 300, "there is room for all");
        // The hand takes away marks, and comes round.
        (300..320).for_each(|number| part.learn(key(number), used(1)));
        let old = known(&part, 0..300);
        let (again, silent) = old.split_at(old.len() / 2);
        again.iter().for_each(|number| part.learn(key(*number), used(2)));
        (320..400).for_each(|number| part.learn(key(number), used(1)));
        assert_eq!(part.len(), 300);
        let gone = |keys: &[u64]| keys.len() - known(&part, keys.iter().copied()).len();
        assert!(gone(silent) >= 70 && gone(again) <= 10, "{} of the silent, {}", gone(silent), gone(again));
    }

    /// However large the part is, a new key looks at few entries.
    #[test]
    fn a_part_of_marked_entries_has_room_after_a_few_looks() {
        let mut part = KnownPart::new(4_000);
        (0..3_000).for_each(|number| part.learn(key(number), used(1)));
        part.learn(key(3_000), used(1));
        assert_eq!(known(&part, 0..3_001).len(), 3_000);
        assert!(part.hand <= LOOKS * 4, "{}", part.hand);
    }

    #[test]
    fn the_smallest_part_has_room_for_a_key() {
        let mut part = KnownPart::new(0);
        (0..5).for_each(|number| part.learn(key(number), used(number)));
        assert_eq!(part.get(key(4)), Some(used(4)));
        assert_eq!((part.len(), part.remove(key(4)), part.len()), (1, Some(used(4)), 0));
    }
}
