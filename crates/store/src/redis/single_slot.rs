//! Nodes of a cluster that get a script call for each slot, and when the log says so.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::topology::Address;
use weir_time::clock::monotonic;

/// A node is logged again only after this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Nodes of a cluster that get a call for each slot, for all workers.
#[derive(Default)]
pub(super) struct SingleSlotNodes {
    calls: AtomicU64,
    refusing: Mutex<HashMap<Address, RefusingNode>>,
}

#[derive(Default)]
struct RefusingNode {
    /// Links whose last trial failed.
    links: usize,
    /// Whether the log says so.
    is_logged: bool,
    logged_at: Option<Instant>,
}

impl SingleSlotNodes {
    /// Counts calls to a node that gets one for each slot.
    pub(super) fn count(&self, calls: usize) {
        self.calls.fetch_add(calls as u64, Relaxed);
    }

    /// How many such calls there were.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }
    /// A trial of a link to the node at `address` has failed, for the first time if `is_first`. Returns whether that is
    /// worth a line in the log.
    pub(super) fn failed(&self, address: &Address, is_first: bool) -> bool {
        let mut refusing = self.refusing.lock();
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < LOG_EVERY);
        refusing.retain(|_, node| node.links > 0 || is_recent(node.logged_at));
        let node = refusing.entry(address.clone()).or_default();
        node.links += usize::from(is_first);
        if node.is_logged || is_recent(node.logged_at) {
            return false;
        }
        (node.is_logged, node.logged_at) = (true, Some(monotonic()));
        true
    }

    /// A link to the node whose trial had failed has gone, or its trial has passed. Returns whether it was the last one
    /// of a node whose failure is logged.
    pub(super) fn forget(&self, address: &Address) -> bool {
        let mut refusing = self.refusing.lock();
        let Some(node) = refusing.get_mut(address) else { return false };
        node.links = node.links.saturating_sub(1);
        node.links == 0 && std::mem::take(&mut node.is_logged)
    }
}
