//! Operations on a queue, and their answers.

use std::sync::Arc;

use weir_units::Micros;

use super::{ItemId, OutcomeRecord, OutcomeSearch, OutcomeTotals, QueueTotals};

/// Part of a named queue: the items themselves, or the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePart {
    /// The queue itself.
    Main,
    /// The dead letters of the queue.
    Dead,
}

/// Operation on a queue.
#[derive(Debug, Clone, Copy)]
pub enum QueueOp<'a> {
    /// Puts all items into the queue, or none.
    Enqueue {
        /// The items, at most [`MAX_ITEMS`](super::MAX_ITEMS), with distinct ids.
        items: &'a [NewItem<'a>],
    },
    /// Hands items to a worker.
    Take {
        /// Name of the worker.
        taker: &'a str,
        /// The most items, 1 to [`MAX_ITEMS`](super::MAX_ITEMS).
        max_items: usize,
        /// The token of this delivery, for all of its items; 0 for none.
        token: u64,
    },
    /// Acks items.
    Ack {
        /// Ids of the items.
        ids: &'a [ItemId],
        /// The token of each item's delivery; 0, or none at all, is not checked.
        tokens: &'a [u64],
        /// Outcome of the work; may be empty.
        outcome: &'a str,
    },
    /// Nacks items, so that they are delivered again.
    Nack {
        /// Ids of the items.
        ids: &'a [ItemId],
        /// Tokens of the deliveries, as in an Ack.
        tokens: &'a [u64],
        /// Least delay until the next delivery.
        delay: Micros,
    },
    /// Gives workers more time.
    Extend {
        /// Ids of the items.
        ids: &'a [ItemId],
        /// Tokens of the deliveries, as in an Ack.
        tokens: &'a [u64],
        /// Time until the next delivery.
        visibility: Micros,
    },
    /// Shows items without taking them.
    Browse {
        /// Cursor: items with ids up to this one are skipped.
        after: ItemId,
        /// The most items, 1 to [`MAX_ITEMS`](super::MAX_ITEMS).
        max_items: usize,
    },
    /// Moves dead letters back into their queue, as new items. It is an operation of the queue itself.
    Redrive {
        /// Cursor: dead letters with ids up to this one are skipped.
        after: ItemId,
        /// The most dead letters to read, 1 to [`MAX_ITEMS`](super::MAX_ITEMS).
        max_items: usize,
    },
    /// Removes all items.
    Purge,
    /// Looks for outcomes, the newest first.
    Outcomes(OutcomeSearch<'a>),
    /// Statistics of the queue.
    Stats {
        /// Number of newest outcomes in the answer.
        outcomes: usize,
    },
}

/// Items, each with the token of its delivery; 0, or none at all, is not checked.
#[derive(Clone, Copy)]
pub(super) struct Deliveries<'a> {
    pub(super) ids: &'a [ItemId],
    pub(super) tokens: &'a [u64],
}

impl<'a> Deliveries<'a> {
    /// Iterates over the items with their tokens.
    pub(super) fn each(self) -> impl Iterator<Item = (ItemId, u64)> + 'a {
        let tokens = self.tokens.iter().copied().chain(std::iter::repeat(0));
        self.ids.iter().copied().zip(tokens)
    }
}

/// An item that is put into a queue.
#[derive(Debug, Clone, Copy)]
pub struct NewItem<'a> {
    /// The id under which it is accepted once; empty for none.
    pub id: &'a str,
    /// The work.
    pub payload: &'a [u8],
    /// Digest of the payload; 0 for none. Under a known id, another one is refused.
    pub digest: u128,
}

/// The answer of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueAnswer {
    /// Number of items that hold a place, after the call.
    pub depth: u64,
    /// Number of items that the call removed because they were too old.
    pub aged_out: u64,
    /// Result of the operation.
    pub reply: QueueReply,
}

/// Result of an operation on a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueReply {
    /// The items are in the queue.
    Accepted {
        /// Ids of the items, in order.
        ids: Vec<ItemId>,
        /// Number of new ones.
        added: u64,
        /// Number of others that were dropped for them.
        dropped: u64,
    },
    /// The items were refused, all of them.
    Refused(QueueRefusal),
    /// Items were handed out.
    Taken {
        /// The items; none if there are none for now.
        items: Vec<DeliveredItem>,
        /// Time until the next item may be delivered, if none was.
        next_after: Option<Micros>,
        /// Number of items moved to the dead letters meanwhile.
        dead_lettered: u64,
    },
    /// Items were acked or given back.
    Settled {
        /// True for each item that a worker had, in the order of the call.
        done: Vec<bool>,
        /// Number of items moved to the dead letters.
        dead_lettered: u64,
    },
    /// Items were shown.
    Browsed {
        /// The items, in the order of their ids.
        items: Vec<BrowsedItem>,
        /// Cursor of the next page; `None` after the last one.
        next: Option<ItemId>,
    },
    /// Dead letters were moved back.
    Redriven {
        /// The ids that they have now, in order.
        items: Vec<ItemId>,
        /// Cursor of the next call; `None` after the last dead letter.
        next: Option<ItemId>,
        /// True if the queue had no place for the next one.
        is_full: bool,
        /// Number of dead letters that are left.
        dead_depth: u64,
    },
    /// Outcomes were found.
    Outcomes {
        /// The outcomes, the newest first; none if only totals were asked for.
        found: Vec<OutcomeRecord>,
        /// Totals of outcomes by fate.
        totals: OutcomeTotals,
        /// Cursor of the next search; `None` after the last outcome.
        next: Option<ItemId>,
    },
    /// The part of the queue was emptied.
    Purged {
        /// Number of removed items.
        items: u64,
    },
    /// Statistics of the queue.
    Stats(QueueStats),
}

/// Reason of a refused Enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueRefusal {
    /// The queue has no room for all of the items now.
    Full,
    /// The call has more items, or bytes, than the queue can ever hold.
    Never,
    /// The item at this place has the id of one with another payload.
    OtherPayload(u64),
}

/// An item that a worker gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredItem {
    /// Id of the item.
    pub id: ItemId,
    /// The work.
    pub payload: Arc<[u8]>,
    /// Number of deliveries, including this one.
    pub deliveries: u64,
    /// Reason of a repeated delivery; `None` at the first delivery.
    pub again: Option<Redelivery>,
    /// A dead letter's id in the queue that it comes from.
    pub origin: Option<ItemId>,
}

/// An item that an operator looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowsedItem {
    /// Id of the item.
    pub id: ItemId,
    /// The work.
    pub payload: Arc<[u8]>,
    /// Number of deliveries so far.
    pub deliveries: u64,
    /// True if the last worker gave it back.
    pub is_nacked: bool,
    /// Name of the last worker, if it was delivered.
    pub taker: Option<Box<str>>,
    /// Time until it is delivered again, if it was delivered.
    pub due_after: Option<Micros>,
    /// A dead letter's id in the queue that it comes from.
    pub origin: Option<ItemId>,
}

/// Reason of a repeated delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redelivery {
    /// The cause.
    pub cause: RedeliveryCause,
    /// Name of the previous worker.
    pub taker: Box<str>,
}

/// Cause of a redelivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedeliveryCause {
    /// The worker nacked it.
    Nack,
    /// The worker did not ack it in time.
    Visibility,
}

/// Statistics of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Items that workers have, or that wait to be delivered again.
    pub unacked: u64,
    /// Bytes of the payloads of all items.
    pub bytes: u64,
    /// Items among the dead letters.
    pub dead_depth: u64,
    /// Age of the oldest item.
    pub oldest_age: Option<Micros>,
    /// Totals since the queue was created.
    pub totals: QueueTotals,
    /// Outcomes that are kept.
    pub outcomes: u64,
    /// The newest of them, the newest first.
    pub newest: Vec<OutcomeRecord>,
}
