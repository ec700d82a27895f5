//! The line of calls on one node that wait for items of a queue, in order of arrival.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::{Mutex, MutexGuard, Notify};

/// The most calls that wait for one queue on one node.
pub(super) const MAX_WAITING: usize = 10_000;

/// Line of takers of a queue. Only the first of the line asks the store, so that a node polls each queue once.
#[derive(Debug, Default)]
pub(super) struct TakeLine {
    /// Held by the first. The lock is fair: it is handed over in order.
    first: Mutex<()>,
    /// Signals that an item was enqueued on this node.
    came: Notify,
    waiting: AtomicUsize,
}

/// A place in the line.
pub(super) struct LinePlace<'a>(&'a TakeLine);

impl TakeLine {
    /// Wakes the first of the line. If the line is empty, the next taker checks once more.
    pub(super) fn wake(&self) {
        self.came.notify_one();
    }

    /// Waits until an item is enqueued on this node.
    pub(super) async fn came(&self) {
        self.came.notified().await;
    }

    /// True if no call waits.
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
    /// Waits until this is the first place.
    pub(super) async fn first(&self) -> MutexGuard<'_, ()> {
        self.0.first.lock().await
    }
}

impl Drop for LinePlace<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
