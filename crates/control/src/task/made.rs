//! The ids of the changes that a node has seen, so that a caller without an answer can ask whether its change was made.

use std::collections::{HashMap, VecDeque};

/// Changes that are remembered.
const MAX_MADE: usize = 100_000;

/// The last changes by their ids.
#[derive(Debug, Default)]
pub(super) struct MadeChanges {
    versions: HashMap<u64, u64>,
    order: VecDeque<u64>,
}

impl MadeChanges {
    pub(super) fn push(&mut self, change: u64, version: u64) {
        if self.versions.insert(change, version).is_some() {
            return;
        }
        self.order.push_back(change);
        if self.order.len() > MAX_MADE
            && let Some(oldest) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
        }
    }

    /// The version of a change.
    pub(super) fn version(&self, change: u64) -> Option<u64> {
        self.versions.get(&change).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_changes_are_remembered() {
        let mut made = MadeChanges::default();
        (0..=MAX_MADE as u64).for_each(|change| made.push(change, change + 7));
        made.push(5, 99);
        let found = [0, 1, 5, MAX_MADE as u64].map(|change| made.version(change));
        assert_eq!(found, [None, Some(8), Some(99), Some(MAX_MADE as u64 + 7)]);
        assert_eq!((made.order.len(), made.versions.len()), (MAX_MADE, MAX_MADE));
    }
}
