//! Records of ids.

use smallvec::SmallVec;

use super::MAX_LIMITS;
use super::held_parts::MOST_AHEAD;

/// The record of a hold, or of a settlement that came without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRecord {
    /// Time at which the hold ends.
    pub end: u64,
    /// Until when the id is known.
    pub until: u64,
    /// A digest of the question; `None` if the settlement came without one.
    pub question: Option<u64>,
    /// The settlement, if there was one.
    pub settlement: Option<Settlement>,
    /// The limits without a fixed cost.
    pub entries: SmallVec<[HoldEntry; 2]>,
}

/// A settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// A digest of its costs.
    pub digest: u64,
    /// The outcome.
    pub outcome: SettleOutcome,
}

/// State in which a settlement found the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleOutcome {
    /// An open hold.
    Settled,
    /// A hold that had ended.
    Late,
    /// No hold.
    Unknown,
}

/// One limit of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldEntry {
    /// A digest of the key of the limit's state, of 52 bits.
    pub key: u64,
    /// Granted units; `None` for a limit in shadow mode that did not admit the call.
    pub granted: Option<u64>,
    /// The units of it that were charged at once.
    pub kept: u64,
    /// The units of its part; after the settlement, what that charged.
    pub open: u64,
    /// Time at which its part ends.
    pub end: u64,
    /// The mark of the parts that it belongs to.
    pub mark: u64,
}

/// The record of a call with an id and without a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// A digest of its question.
    pub question: u64,
    /// Until when it is known, by the store's now.
    pub until: u64,
    /// Units that each limit granted.
    pub granted: [Option<u64>; MAX_LIMITS],
}

impl HoldRecord {
    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        if self.entries.spilled() { self.entries.capacity() * size_of::<HoldEntry>() } else { 0 }
    }

    pub(super) const fn has_ended(&self, at: u64) -> bool {
        at >= self.end || self.end - at > MOST_AHEAD
    }

    pub(super) fn entry(&self, key: u64) -> Option<&HoldEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}
