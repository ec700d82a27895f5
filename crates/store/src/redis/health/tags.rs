//! Unused hash tags in given slots.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_core::key::slot;

use crate::redis::surroundings::RandomSource;

/// Maximum number of tags tried. If a node has a single slot, one tag in 16,384 fits, so a search fails with a
/// probability of e^-64.
const TRIES: u64 = 64 * 16_384;

/// The tags of one process: a counter that starts at a random value.
#[derive(Debug)]
pub(super) struct ProcessTags(AtomicU64);

impl ProcessTags {
    pub(super) fn new(random: &RandomSource) -> Self {
        Self(AtomicU64::new(random.number()))
    }

    /// Returns the next tag in a slot that `owns` accepts; `None` if none is found.
    pub(super) fn next(&self, owns: impl Fn(u16) -> bool) -> Option<u128> {
        let first = self.0.load(Relaxed);
        let tag = (0..TRIES).map(|tried| first.wrapping_add(tried)).find(|tag| owns(slot((*tag).into())))?;
        self.0.store(tag.wrapping_add(1), Relaxed);
        Some(tag.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_with_a_single_slot_gets_a_tag_as_well() {
        let tags = ProcessTags::new(&RandomSource::System);
        for only in [0, 1, 8191, 16_383] {
            let tag = tags.next(|slot| slot == only).unwrap();
            assert_eq!(slot(tag), only);
            assert_ne!(tags.next(|slot| slot == only), Some(tag), "each has its own");
        }
        assert_eq!(tags.next(|_| false), None);
        assert_ne!(
            ProcessTags::new(&RandomSource::System).next(|_| true),
            ProcessTags::new(&RandomSource::System).next(|_| true)
        );
    }
}
