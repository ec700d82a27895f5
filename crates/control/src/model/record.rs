//! Records and positions.

use super::{ENDED_KEPT, GENERATION_PREFIX};

/// An entry, a deletion or a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRecord {
    /// Key of the entry: 1 to [`MAX_CONTROL_KEY`](super::MAX_CONTROL_KEY) bytes.
    pub key: Box<str>,
    /// Version of the record, in µs.
    pub version: u64,
    /// The random id of the change that wrote it.
    pub change: u64,
    /// End in µs since 1970 by the store's clock; 0 for never. For a deletion, the time at which it was made.
    pub expires_at: u64,
    /// True for a deletion.
    pub deleted: bool,
    /// Content, at most [`MAX_CONTROL_BODY`](super::MAX_CONTROL_BODY) bytes. For a deletion, the caller and the reason.
    pub body: Box<[u8]>,
}

/// Version and id of a change. [`ControlPosition::NONE`] stands for no change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlPosition {
    /// The version, in µs.
    pub version: u64,
    /// The random id of the change.
    pub change: u64,
}

impl ControlPosition {
    /// The position before the first change; of an entry, that there is none.
    pub const NONE: Self = Self { version: 0, change: 0 };

    /// The position that no store knows, so that every store answers "read everything".
    pub const UNSETTLED: Self = Self { version: 0, change: u64::MAX };
}

impl ControlRecord {
    /// The change that wrote it.
    #[must_use]
    pub fn position(&self) -> ControlPosition {
        ControlPosition { version: self.version, change: self.change }
    }

    /// True if it replaces `other`, which has the same key.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.position() > other.position()
    }

    /// True if it is in force at this time.
    #[must_use]
    pub fn is_live(&self, now: u64) -> bool {
        !self.deleted && (self.expires_at == 0 || self.expires_at > now)
    }

    /// True if the record ended so long ago that no node needs it any more.
    #[must_use]
    pub fn is_old(&self, now: u64) -> bool {
        self.expires_at != 0 && self.expires_at.saturating_add(ENDED_KEPT.0) <= now
    }

    /// True if it is a generation.
    #[must_use]
    pub fn is_generation(&self) -> bool {
        self.key.starts_with(GENERATION_PREFIX)
    }

    /// End of the record; the greatest number for never. Generations have none, because they do not count.
    pub(super) fn ends(&self) -> Option<u64> {
        let ends = if self.expires_at == 0 { u64::MAX } else { self.expires_at };
        (!self.is_generation()).then_some(ends)
    }
}
