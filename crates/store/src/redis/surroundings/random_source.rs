//! Random numbers that no decision depends on.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Source of random numbers.
#[derive(Debug, Clone, Default)]
pub enum RandomSource {
    /// The operating system.
    #[default]
    System,
    /// A seed: the same numbers each time. Clones share them.
    Seeded(Arc<AtomicU64>),
}

impl RandomSource {
    /// The numbers of this seed.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    /// The next number.
    pub fn number(&self) -> u64 {
        match self {
            Self::System => RandomState::new().hash_one(0_u8),
            // SplitMix64.
            Self::Seeded(state) => {
                let mut number = state.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
                number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                number ^ number >> 31
            }
        }
    }

    /// The next number, below `bound`; 0 if `bound` is.
    pub fn below(&self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_its_numbers_and_clones_share_them() {
        let numbers = |seed| {
            let one = RandomSource::seeded(seed);
            let other = one.clone();
            [one.number(), other.number(), one.number()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert_ne!(RandomSource::System.number(), RandomSource::System.number());
        assert!((0..1000).all(|seed| RandomSource::seeded(seed).below(7) < 7));
        assert_eq!(RandomSource::System.below(0), 0);
    }
}
