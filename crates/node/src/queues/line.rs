//! The calls of one node that wait for items of a queue, in the order in which they came.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::{Mutex, MutexGuard, Notify};

/// The most calls that wait for one queue on one node.
pub(super) const MAX_WAITING: usize = 10_000;

/// Who waits for items of a queue. Only the first of the line asks the store, so that a node polls each queue once.
#[derive(Debug, Default)]
pub(super) struct TakeLine {
    /// Held by the first. The lock is fair: those who wait for it get it in their order.
    first: Mutex<()>,
    /// An item of this node has come.
    came: Notify,
    waiting: AtomicUsize,
}

/// A place in the line.
pub(super) struct LinePlace<'a>(&'a TakeLine);

impl TakeLine {
    /// Wakes the first of the line. If nobody waits, the next one looks once more.
    pub(super) fn wake(&self) {
        self.came.notify_one();
    }

    /// Until an item of this node has come.
    pub(super) async fn came(&self) {
        self.came.notified().await;
    }

    /// True if somebody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    /// Joins the end of the line, unless it is full.
    pub(super) fn join(&self) -> Option<LinePlace<'_>> {
        let place = LinePlace(self);
        (self.waiting.fetch_add(1, Relaxed) < MAX_WAITING).then_some(place)
    }
}

impl LinePlace<'_> {
    /// Until this is the first place.
    pub(super) async fn first(&self) -> MutexGuard<'_, ()> {
        self.0.first.lock().await
    }
}

impl Drop for LinePlace<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
