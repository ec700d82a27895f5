//! Streams that one side has reset a short time ago. Frames for them may still be in flight (RFC 9113, 5.1).

use std::collections::VecDeque;

/// The last streams that were reset. Beyond `limit` the oldest are forgotten.
pub(super) struct RecentStreams {
    ids: VecDeque<u32>,
    limit: usize,
}

impl RecentStreams {
    pub(super) const fn new(limit: usize) -> Self {
        Self { ids: VecDeque::new(), limit }
    }

    pub(super) fn remember(&mut self, id: u32) {
        if self.ids.len() >= self.limit {
            self.ids.pop_front();
        }
        self.ids.push_back(id);
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// Forgets a stream; whether it was known.
    pub(super) fn forget(&mut self, id: u32) -> bool {
        let place = self.ids.iter().position(|known| *known == id);
        place.is_some_and(|place| self.ids.remove(place).is_some())
    }
}
