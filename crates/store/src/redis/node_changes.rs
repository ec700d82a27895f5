//! Notices of changes of the set of nodes.
//!
//! Those who wait are woken in the order in which they began to wait. A watch channel of tokio wakes them in a random
//! order, so that a simulation would take another course each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tokio::sync::Notify;

/// The number of changes after the last one.
const ENDED: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(super) struct NodeChanges(Arc<ChangeCount>);

#[derive(Debug)]
pub(super) struct NextChange {
    count: Arc<ChangeCount>,
    seen: u64,
}

#[derive(Debug, Default)]
struct ChangeCount {
    made: AtomicU64,
    notify: Notify,
}

impl NodeChanges {
    pub(super) fn tell(&self) {
        self.0.made.fetch_add(1, SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Waits for the changes from now on.
    pub(super) fn subscribe(&self) -> NextChange {
        NextChange { count: Arc::clone(&self.0), seen: self.0.made.load(SeqCst) }
    }
}

impl Drop for NodeChanges {
    fn drop(&mut self) {
        self.0.made.store(ENDED, SeqCst);
        self.0.notify.notify_waiters();
    }
}

impl NextChange {
    /// Returns true after a change that it does not know, and false if there will be none.
    pub(super) async fn changed(&mut self) -> bool {
        loop {
            // Begins to wait before it looks, so that no change comes in between.
            let notified = self.count.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            match self.count.made.load(SeqCst) {
                ENDED => return false,
                made if made != self.seen => {
                    self.seen = made;
                    return true;
                }
                _ => notified.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_are_told_once_to_all_in_their_order() {
        let (changes, order) = (NodeChanges::default(), Arc::new(parking_lot::Mutex::new(Vec::new())));
        changes.tell();
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let (mut next, order) = (changes.subscribe(), Arc::clone(&order));
                tokio::spawn(async move {
                    while next.changed().await {
                        order.lock().push(number);
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            tokio::task::yield_now().await;
            assert!(order.lock().is_empty(), "it was told before");
            changes.tell();
            tokio::task::yield_now().await;
            assert_eq!(std::mem::take(&mut *order.lock()), (0..20).collect::<Vec<_>>());
        }
        drop(changes);
        for task in waiting {
            task.await.unwrap();
        }
    }
}
