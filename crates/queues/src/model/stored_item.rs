//! An item of a queue, and its last delivery.

use std::sync::Arc;

use weir_units::Micros;

use super::ItemId;

/// An item that is in a queue.
#[derive(Debug)]
pub(super) struct StoredItem {
    pub(super) payload: Arc<[u8]>,
    pub(super) origin: Option<ItemId>,
    /// Last delivery, if the item was delivered.
    pub(super) delivery: Option<DeliveryRecord>,
}

/// The last delivery of an item.
#[derive(Debug, Clone)]
pub(super) struct DeliveryRecord {
    pub(super) deliveries: u64,
    pub(super) due: Micros,
    /// True if the worker nacked it.
    pub(super) nacked: bool,
    pub(super) taker: Box<str>,
    /// Token of the delivery; 0 for none.
    pub(super) token: u64,
}
