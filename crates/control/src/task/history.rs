//! The last changes of entries, whichever node made them.

use std::collections::VecDeque;

use weir_proto::v1::ControlChange;

/// Changes that are kept.
const MAX_CHANGES: usize = 1_000;

/// The last changes.
#[derive(Debug, Default)]
pub(super) struct ChangeHistory(VecDeque<ControlChange>);

impl ChangeHistory {
    pub(super) fn push(&mut self, change: ControlChange) {
        if self.0.len() >= MAX_CHANGES {
            self.0.pop_front();
        }
        self.0.push_back(change);
    }

    /// The last changes, at most `limit`, the last one first.
    pub(super) fn last(&self, limit: usize) -> Vec<ControlChange> {
        self.0.iter().rev().take(limit).cloned().collect()
    }
}
