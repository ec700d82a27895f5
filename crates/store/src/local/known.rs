//! What this process knows of the store: for each key how much was used, and until when.
//!
//! Each answer of the store writes it, so it is a table of fixed parts, each under a lock of its own. When a part has
//! used its budget, a key with an old answer goes: an answer marks its entry, and the hand of a clock takes the first entry
//! without a mark, and the marks that it passes. So an answer touches one entry only. It costs no exactness that a key goes:
//! one that is not known begins full.

use parking_lot::Mutex;

use crate::memory::index::{Index, Slot};

/// Parts of the table; many more than workers.
const PARTS: usize = 128;

/// Bytes of an entry, with its places in the index and room for both to grow.
const ENTRY_BYTES: usize = 64;

/// Not an entry.
const NONE: Slot = Slot::MAX;

/// The use of keys, by their digests.
pub(super) struct KnownUse(Box<[Mutex<KnownPart>]>);

/// What was used of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// The strategy under which it is known: another one does not know it.
    pub(super) known_as: u64,
    /// Units.
    pub(super) used: u64,
    /// When the limit is full again, in microseconds since the table was made.
    pub(super) until: u64,
}

/// An entry of a part.
struct KnownEntry {
    digest: u128,
    known: Use,
    /// The next removed entry, if this one is removed too.
    next_free: Slot,
    /// True if the store answered for it again since the hand passed.
    is_marked: bool,
}

struct KnownPart {
    index: Index,
    entries: Vec<KnownEntry>,
    /// The first entry that was removed.
    free: Slot,
    /// The next entry to go, if it has no mark.
    hand: usize,
    most: usize,
}

impl KnownUse {
    /// A table of at most about `budget` bytes.
    pub(super) fn new(budget: usize) -> Self {
        let most = (budget / PARTS / ENTRY_BYTES).max(1);
        Self((0..PARTS).map(|_| Mutex::new(KnownPart::new(most))).collect())
    }

    /// Keeps what an answer said of a key.
    pub(super) fn learn(&self, digest: u128, known: Use) {
        self.part(digest).lock().learn(digest, known);
    }

    /// Keeps it unless the key is known already.
    pub(super) fn learn_again(&self, digest: u128, known: Use) {
        let mut part = self.part(digest).lock();
        if part.find(digest).is_none() {
            part.learn(digest, known);
        }
    }

    /// Takes what is known of a key, if it is still true at `now`.
    pub(super) fn take(&self, digest: u128, known_as: u64, now: u64) -> Option<Use> {
        let known = self.part(digest).lock().remove(digest)?;
        (known.known_as == known_as && now < known.until).then_some(known)
    }

    /// Forgets a key.
    pub(super) fn forget(&self, digest: u128) {
        self.part(digest).lock().remove(digest);
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|part| part.lock().index.len()).sum()
    }

    fn part(&self, digest: u128) -> &Mutex<KnownPart> {
        // Other bits than those that choose a place in the index, and the shard in the memory store.
        &self.0[(digest >> 40) as usize % PARTS]
    }
}

impl KnownPart {
    fn new(most: usize) -> Self {
        Self { index: Index::default(), entries: Vec::new(), free: NONE, hand: 0, most }
    }

    fn find(&self, digest: u128) -> Option<Slot> {
        let is_it = |slot: Slot| self.entries.get(slot as usize).is_some_and(|one| one.digest == digest);
        self.index.find(digest as u64, is_it)
    }

    fn learn(&mut self, digest: u128, known: Use) {
        let found = self.find(digest);
        if let Some(entry) = found.and_then(|slot| self.entries.get_mut(slot as usize)) {
            (entry.known, entry.is_marked) = (known, true);
            return;
        }
        // The hand comes to an entry that was removed before it has passed all others.
        let is_marked = self.free != NONE;
        let slot = self.room();
        if let Some(entry) = self.entries.get_mut(slot as usize) {
            *entry = KnownEntry { digest, known, next_free: NONE, is_marked };
        }
        let Self { index, entries, .. } = self;
        index.grow(1, |slot| hash_in(entries, slot));
        index.insert(digest as u64, slot);
    }

    /// An entry that is not in the index.
    fn room(&mut self) -> Slot {
        if self.free != NONE {
            let slot = self.free;
            self.free = self.entries.get(slot as usize).map_or(NONE, |entry| entry.next_free);
            slot
        } else if self.entries.len() < self.most {
            self.grow()
        } else {
            let slot = self.pass_the_marked();
            self.unindex(slot);
            slot
        }
    }

    /// Moves the hand past the first entry without a mark, and returns it. All entries are in use.
    fn pass_the_marked(&mut self) -> Slot {
        loop {
            let slot = self.hand;
            self.hand = (slot + 1) % self.entries.len().max(1);
            match self.entries.get_mut(slot) {
                Some(entry) if entry.is_marked => entry.is_marked = false,
                // `most` is far below the largest slot.
                _ => return slot as Slot,
            }
        }
    }

    /// Adds an entry. In steps, so that the list has little more room than it uses.
    fn grow(&mut self) -> Slot {
        let length = self.entries.len();
        if length == self.entries.capacity() {
            let step = (length / 8 + 8).min(self.most - length);
            self.entries.reserve_exact(step);
        }
        let known = Use { known_as: 0, used: 0, until: 0 };
        self.entries.push(KnownEntry { digest: 0, known, next_free: NONE, is_marked: false });
        length as Slot
    }

    fn remove(&mut self, digest: u128) -> Option<Use> {
        let slot = self.find(digest)?;
        self.unindex(slot);
        let entry = self.entries.get_mut(slot as usize)?;
        (entry.next_free, self.free) = (self.free, slot);
        Some(entry.known)
    }

    fn unindex(&mut self, slot: Slot) {
        let Self { index, entries, .. } = self;
        index.remove(hash_in(entries, slot), slot, |slot| hash_in(entries, slot));
    }
}

fn hash_in(entries: &[KnownEntry], slot: Slot) -> u64 {
    entries.get(slot as usize).map_or(0, |entry| entry.digest as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const fn used(used: u64) -> Use {
        Use { known_as: 7, used, until: 100 }
    }

    #[test]
    fn what_is_known_is_taken_once_while_it_is_true_and_by_its_strategy() {
        let known = KnownUse::new(1 << 20);
        for digest in [1, 2, 3, 4] {
            known.learn(digest, used(1));
            known.learn(digest, used(9));
        }
        assert_eq!(known.take(1, 7, 99), Some(used(9)));
        assert_eq!(known.take(1, 7, 99), None, "it was taken");
        assert_eq!(known.take(2, 7, 100), None, "its time is over");
        assert_eq!(known.take(3, 8, 0), None, "another strategy");
        known.forget(4);
        assert_eq!(known.len(), 0);
        known.learn_again(5, used(3));
        known.learn_again(5, used(4));
        assert_eq!(known.take(5, 7, 0), Some(used(3)));
    }

    /// Keys of one part come, change and go. It has what was said last of each key that it has, and is full.
    #[test]
    fn what_is_known_of_a_key_is_what_was_said_last() {
        let mut part = KnownPart::new(10);
        let mut last: HashMap<u128, Use> = HashMap::new();
        let mut random = 1_u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digest = u128::from(random >> 33) % 17 * 0x9e37_79b9_7f4a_7c15;
            if random >> 60 == 0 {
                let (known, last) = (part.remove(digest), last.remove(&digest));
                assert!(known.is_none() || known == last);
            } else {
                part.learn(digest, used(step));
                last.insert(digest, used(step));
            }
            let known = |digest| part.find(digest).map(|slot| part.entries[slot as usize].known);
            assert_eq!(last.keys().filter(|digest| known(**digest).is_some()).count(), part.index.len());
            assert!(last.iter().all(|(digest, last)| known(*digest).is_none_or(|known| known == *last)));
        }
        assert!(part.index.len() >= 8, "{}", part.index.len());
        assert!(part.entries.capacity() <= 10);
    }

    #[test]
    fn the_oldest_key_goes_unless_the_store_spoke_of_it_again() {
        let mut part = KnownPart::new(4);
        let known =
            |part: &KnownPart| (0..20).filter(|digest| part.find(*digest).is_some()).collect::<Vec<_>>();
        (0..6).for_each(|digest| part.learn(digest, used(1)));
        assert_eq!(known(&part), [2, 3, 4, 5]);
        part.learn(2, used(2));
        part.learn(6, used(1));
        assert_eq!(known(&part), [2, 4, 5, 6], "2 had a mark");
        part.learn(7, used(1));
        assert_eq!(known(&part), [2, 5, 6, 7]);
        part.remove(5);
        part.learn(8, used(1));
        assert_eq!(known(&part), [2, 6, 7, 8], "there was room");
        (9..12).for_each(|digest| part.learn(digest, used(1)));
        assert_eq!(known(&part), [8, 9, 10, 11], "the hand came round");
    }

    #[test]
    fn a_full_table_keeps_to_its_budget() {
        let budget = 1 << 20;
        let known = KnownUse::new(budget);
        for digest in 0..100_000_u128 {
            known.learn(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), used(1));
        }
        let bytes = |part: &Mutex<KnownPart>| {
            let part = part.lock();
            // The index has at most 16 bytes for each of 12 keys, and is never more than doubled.
            part.entries.capacity() * size_of::<KnownEntry>() + part.index.len() * 11
        };
        let held: usize = known.0.iter().map(bytes).sum();
        assert!(held <= budget, "{held}");
        assert!(known.len() > budget / ENTRY_BYTES * 9 / 10, "{}", known.len());
    }
}
