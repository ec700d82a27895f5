//! Outcomes of items: the rule of the archive, its records, and the search for them.

use super::{DEFAULT_OUTCOMES, ItemId};
use weir_units::Micros;

/// Bounds of the archive of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveRule {
    /// Retention of outcomes; zero keeps none.
    pub keep: Micros,
    /// The most outcomes; the oldest go first.
    pub max: u64,
    /// The part of payloads that is kept.
    pub payload: PayloadRule,
}

/// The part of payloads that the archive keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PayloadRule {
    /// Only the size of the payload.
    #[default]
    None,
    /// The SHA-1 digest.
    Digest,
    /// The first [`PAYLOAD_HEAD`](super::PAYLOAD_HEAD) bytes.
    Head,
}

/// The way in which an item left its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFate {
    /// A worker acked it.
    Acked,
    /// The item was moved to the dead letters.
    DeadLettered,
    /// The item was dropped for a new one.
    Dropped,
    /// The item was too old, and the queue has no dead letters.
    AgedOut,
}

/// Outcome of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeRecord {
    /// Id of the record: the time at which the item left the queue.
    pub at: ItemId,
    /// The item.
    pub item: ItemId,
    /// The way in which it left.
    pub fate: ItemFate,
    /// Bytes of its payload.
    pub size: u64,
    /// Number of deliveries.
    pub deliveries: u64,
    /// Name of the last worker; empty without deliveries.
    pub taker: Box<str>,
    /// The worker's text; empty unless it was acked with one.
    pub text: Box<str>,
    /// The kept part of its payload.
    pub payload: Option<KeptPayload>,
}

/// The kept part of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptPayload {
    /// The SHA-1 digest, in hexadecimal digits.
    Digest(Box<str>),
    /// The first bytes.
    Head(Box<[u8]>),
}

/// Filters of a search for outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeSearch<'a> {
    /// The id of the item, if only its outcome is searched.
    pub item: Option<ItemId>,
    /// The fate of the items, if only outcomes of one are searched.
    pub fate: Option<ItemFate>,
    /// The text of the outcomes; empty for all.
    pub text: &'a str,
    /// The earliest millisecond.
    pub from_ms: u64,
    /// Cursor: only older outcomes are found.
    pub before: ItemId,
    /// The most outcomes, 1 to [`MAX_ITEMS`](super::MAX_ITEMS); 0 for totals alone.
    pub max_items: usize,
}

/// Number of outcomes by the way in which items left their queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutcomeTotals {
    /// Items that were acked.
    pub acked: u64,
    /// Items that went to the dead letters.
    pub dead_lettered: u64,
    /// Items that were dropped for new ones.
    pub dropped: u64,
    /// Items that were too old, without dead letters.
    pub aged_out: u64,
}

impl ArchiveRule {
    /// Keeps outcomes for this time, without payloads, and the default number.
    #[must_use]
    pub const fn new(keep: Micros) -> Self {
        Self { keep, max: DEFAULT_OUTCOMES, payload: PayloadRule::None }
    }
}

impl PayloadRule {
    /// Name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Digest => "digest",
            Self::Head => "head",
        }
    }
}

impl OutcomeSearch<'_> {
    /// True if this outcome passes the filters, whatever its time.
    pub(super) fn matches(&self, record: &OutcomeRecord) -> bool {
        self.item.is_none_or(|item| item == record.item)
            && self.fate.is_none_or(|fate| fate == record.fate)
            && (self.text.is_empty() || *self.text == *record.text)
    }

    /// True if the search continues after `found` outcomes among `looked_at` records.
    pub(super) fn has_place(&self, found: usize, looked_at: usize) -> bool {
        (self.max_items == 0 || found < self.max_items) && looked_at < super::OUTCOME_LOOKS
    }
}

impl OutcomeTotals {
    /// Counts one more.
    pub(super) fn count(&mut self, fate: ItemFate) {
        let total = match fate {
            ItemFate::Acked => &mut self.acked,
            ItemFate::DeadLettered => &mut self.dead_lettered,
            ItemFate::Dropped => &mut self.dropped,
            ItemFate::AgedOut => &mut self.aged_out,
        };
        *total += 1;
    }
}
