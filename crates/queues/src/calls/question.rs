//! Questions about queues, and the errors that replace answers.

use std::time::Instant;

use crate::model::{DeliveredItem, ItemId, NewItem, UnknownQueue};
use weir_core::key::KeySecret;
use weir_node::access::{Refused, Rights};
use weir_node::limiter::InvalidField;
use weir_store::StoreError;
use weir_units::Micros;

/// An item that a caller puts into a queue.
#[derive(Debug, Clone, Copy)]
pub struct PutItem<'a> {
    /// The id under which it is accepted once; empty for none.
    pub id: &'a str,
    /// The work.
    pub payload: &'a [u8],
}

impl<'a> PutItem<'a> {
    /// The item for the store. Only a payload under an id needs a digest.
    pub(super) fn to_new(self) -> NewItem<'a> {
        let Self { id, payload } = self;
        let digest = if id.is_empty() { 0 } else { KeySecret::BUILT_IN.hash(payload).max(1) };
        NewItem { id, payload, digest }
    }
}

/// A question for items.
#[derive(Debug, Clone, Copy)]
pub struct TakeQuestion<'a> {
    /// The rights of its caller.
    pub rights: Rights<'a>,
    /// The queue.
    pub queue: &'a str,
    /// Consumer that takes the items.
    pub consumer: &'a str,
    /// The most items.
    pub max_items: usize,
    /// Longest wait for the first item.
    pub max_wait: Micros,
    /// Time at which the caller gives up.
    pub deadline: Option<Instant>,
}

/// Items that a worker speaks of.
#[derive(Debug, Clone, Copy)]
pub struct WorkersItems<'a> {
    /// Ids of the items.
    pub ids: &'a [ItemId],
    /// The tokens of their deliveries: none, or one for each.
    pub tokens: &'a [u64],
}

/// Items for a worker.
#[derive(Debug, Clone)]
pub struct TakenItems {
    /// The items; none if there were none in time.
    pub items: Vec<DeliveredItem>,
    /// Number of items that hold a place.
    pub depth: u64,
    /// True if the wait ended because this node shuts down.
    pub is_closing: bool,
    /// The token of this delivery; 0 where items are gone once they are taken.
    pub token: u64,
    /// Visibility of the items, if they must be acked.
    pub visible_for: Option<Micros>,
}

/// Errors of calls about queues.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueFailure {
    /// The caller has no right to the queue.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A field breaks its bound.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The configuration has no queue of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownQueue),
    /// Queues of this kind cannot do it.
    #[error("{0}")]
    Unsupported(String),
    /// An id belongs to an item with another payload.
    #[error(
        "id is known with another payload: \"{0}\"; other work needs another id, and none of the items was added"
    )]
    OtherPayload(String),
    /// The limit of pending takers of the queue is reached.
    #[error("{0} calls wait for items of this queue already, the most on one node")]
    TooManyWait(usize),
    /// The store failed.
    #[error("the store failed: {0}")]
    Store(StoreError),
}
