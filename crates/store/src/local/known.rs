//! Knowledge of the store in this process: for each key how much was used, and until when.
//!
//! Each answer of the store writes it, so it is a table of fixed parts, each under a lock of its own, and an answer touches
//! one cache line of it. It costs no exactness that a key goes when a part has used its budget: one that is not known begins
//! full.

mod part;

use parking_lot::Mutex;
use weir_core::strategy::StrategyId;

use self::part::{KnownPart, PLACE_BYTES};

/// Parts of the table; many more than workers.
const PARTS: usize = 128;

pub(super) struct KnownUse(Box<[Mutex<KnownPart>]>);

/// A key as one strategy knows it. Another one, whose number is new, does not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct KnownKey(u128);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) used: u64,
    /// Time at which the limit is full again, in microseconds since the table was made; less than 2^63.
    pub(super) until: u64,
}

impl KnownKey {
    pub(super) fn new(digest: u128, known_as: StrategyId) -> Self {
        Self(digest ^ (u128::from(known_as.number()) << 64))
    }

    /// Chooses the part: other bits than those that choose the place in it, and the shard in the memory store.
    fn part(self) -> usize {
        (self.0 >> 40) as usize % PARTS
    }

    fn hash(self) -> u32 {
        self.0 as u32
    }
}

impl KnownUse {
    /// A table of at most about `budget` bytes.
    pub(super) fn new(budget: usize) -> Self {
        let most = budget / PARTS / PLACE_BYTES;
        Self((0..PARTS).map(|_| Mutex::new(KnownPart::new(most))).collect())
    }

    /// Keeps what an answer said of a key.
    pub(super) fn learn(&self, key: KnownKey, known: Use) {
        self.part(key).lock().learn(key, known);
    }

    /// Keeps it unless the key is known already.
    pub(super) fn learn_again(&self, key: KnownKey, known: Use) {
        let mut part = self.part(key).lock();
        if part.get(key).is_none() {
            part.learn(key, known);
        }
    }

    /// Takes what is known of a key, if it is still true at `now`.
    pub(super) fn take(&self, key: KnownKey, now: u64) -> Option<Use> {
        self.part(key).lock().remove(key).filter(|known| now < known.until)
    }

    pub(super) fn forget(&self, key: KnownKey) {
        self.part(key).lock().remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|part| part.lock().len()).sum()
    }

    fn part(&self, key: KnownKey) -> &Mutex<KnownPart> {
        &self.0[key.part()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn used(used: u64) -> Use {
        Use { used, until: 100 }
    }

    #[test]
    fn what_is_known_is_taken_once_while_it_is_true() {
        let known = KnownUse::new(1 << 20);
        let keys = [1, 2, 3, 4, 5].map(KnownKey);
        for key in keys {
            known.learn(key, used(1));
            known.learn(key, used(9));
        }
        assert_eq!(known.len(), 5);
        assert_eq!(known.take(keys[0], 99), Some(used(9)));
        assert_eq!(known.take(keys[0], 99), None, "it was taken");
        assert_eq!(known.take(keys[1], 100), None, "its time is over");
        known.forget(keys[2]);
        assert_eq!(known.take(keys[2], 0), None, "it is forgotten");
        known.learn_again(keys[2], used(3));
        known.learn_again(keys[3], used(4));
        assert_eq!(known.take(keys[2], 0), Some(used(3)));
        assert_eq!(known.take(keys[3], 0), Some(used(9)));
    }

    #[test]
    fn a_full_table_keeps_to_its_budget() {
        let budget = 1 << 20;
        let known = KnownUse::new(budget);
        for number in 0..100_000_u128 {
            known.learn(KnownKey(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)), used(1));
        }
        let held: usize = known.0.iter().map(|part| part.lock().bytes()).sum();
        assert!(held <= budget, "{held}");
        assert!(known.len() > budget / PLACE_BYTES * 2 / 3, "{}", known.len());
    }
}
