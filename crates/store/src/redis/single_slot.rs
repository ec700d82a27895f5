//! Cluster nodes that get one script call per slot: their number of calls, and the rate limit of their log lines.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::topology::Address;
use weir_time::clock::monotonic;

/// Minimum interval between log lines about one node.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Cluster nodes that get one call per slot. All workers share it.
#[derive(Default)]
pub(super) struct SingleSlotNodes {
    calls: AtomicU64,
    refusing: Mutex<HashMap<Address, RefusingNode>>,
}

#[derive(Default)]
struct RefusingNode {
    /// Links whose last trial failed.
    links: usize,
    is_logged: bool,
    logged_at: Option<Instant>,
}

impl SingleSlotNodes {
    pub(super) fn count(&self, calls: usize) {
        self.calls.fetch_add(calls as u64, Relaxed);
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }
    /// Records a failed trial of a link to the node at `address`. `is_first`: the link's first failure. Returns true if
    /// it should be logged.
    pub(super) fn failed(&self, address: &Address, is_first: bool) -> bool {
        let (mut refusing, now) = (self.refusing.lock(), monotonic());
        let is_recent =
            |at: Option<Instant>| at.is_some_and(|at| now.saturating_duration_since(at) < LOG_EVERY);
        refusing.retain(|_, node| node.links > 0 || is_recent(node.logged_at));
        let node = refusing.entry(address.clone()).or_default();
        node.links += usize::from(is_first);
        if node.is_logged || is_recent(node.logged_at) {
            return false;
        }
        (node.is_logged, node.logged_at) = (true, Some(now));
        true
    }

    /// Records that a link with a failed trial was dropped, or that its trial has passed. Returns true if it was the
    /// last such link of a node whose failure was logged.
    pub(super) fn forget(&self, address: &Address) -> bool {
        let mut refusing = self.refusing.lock();
        let Some(node) = refusing.get_mut(address) else { return false };
        node.links = node.links.saturating_sub(1);
        node.links == 0 && std::mem::take(&mut node.is_logged)
    }
}
