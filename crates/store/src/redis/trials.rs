//! Trials of calls that span slots (`probe.rs`), repeated until one passes, and what operators see meanwhile.
//!
//! Without such calls a node decides as exactly, but it gets a call for each slot. What speaks against them may
//! pass: the node was loading, or did not answer in time, or a right is granted later.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connect::Connection;
use super::context::LinkContext;
use super::probe::{Refusal, spans_slots};
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

/// The trials of one link, over all its connections.
pub(super) struct Trials {
    context: Arc<LinkContext>,
    address: Address,
    has_failed: bool,
}

impl Trials {
    pub(super) fn new(context: Arc<LinkContext>, address: Address) -> Self {
        Self { context, address, has_failed: false }
    }

    /// Returns when a trial on `connection` has passed. Calls do not wait for it.
    pub(super) async fn pass(&mut self, mut connection: Connection) {
        let timeout = Duration::from(self.context.config.deadline);
        for failures in 1.. {
            let LinkContext { config, topology, .. } = &*self.context;
            let trial = spans_slots(&mut connection, &config.namespace, topology, &self.address);
            match tokio::time::timeout(timeout, trial).await.unwrap_or(Err(Refusal::Silence(timeout))) {
                Ok(()) => return self.passed(),
                // The link finds out by itself, and tries on its next connection.
                Err(Refusal::Disconnected) => {}
                Err(Refusal::FewSlots) => tracing::debug!(node = %self.address, "{}", Refusal::FewSlots),
                Err(refusal) => self.failed(&refusal),
            }
            tokio::time::sleep(backoff(failures)).await;
        }
    }

    fn failed(&mut self, refusal: &Refusal) {
        let mut refusing = self.context.single_slot_nodes.refusing.lock();
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < LOG_EVERY);
        refusing.retain(|_, node| node.links > 0 || is_recent(node.logged_at));
        let node = refusing.entry(self.address.clone()).or_default();
        node.links += usize::from(!self.has_failed);
        self.has_failed = true;
        if !node.is_logged && !is_recent(node.logged_at) {
            (node.is_logged, node.logged_at) = (true, Some(monotonic()));
            tracing::warn!(
                node = %self.address, reason = %refusal, to_do = refusal.to_do(),
                "a cluster node gets one script call for each slot, which costs it more; trying on"
            );
        }
    }

    fn passed(&mut self) {
        if self.forget_failure() {
            tracing::info!(node = %self.address, "a cluster node gets one script call for many slots again");
        }
    }

    /// Returns whether this was the last link to a node whose failure is logged.
    fn forget_failure(&mut self) -> bool {
        if !std::mem::take(&mut self.has_failed) {
            return false;
        }
        let mut refusing = self.context.single_slot_nodes.refusing.lock();
        let Some(node) = refusing.get_mut(&self.address) else { return false };
        node.links = node.links.saturating_sub(1);
        node.links == 0 && std::mem::take(&mut node.is_logged)
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        self.forget_failure();
    }
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
}

/// 1 s, doubling up to a minute, and a little less each time so that workers do not ask in step.
fn backoff(failures: u32) -> Duration {
    use std::hash::BuildHasher as _;
    let base = 1_000_u64 << failures.saturating_sub(1).min(6);
    let base = base.min(60_000);
    let jitter = std::collections::hash_map::RandomState::new().hash_one(failures) % (base / 10 + 1);
    Duration::from_millis(base - jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_repeated_after_a_second_that_doubles_up_to_a_minute() {
        let bases = [1, 2, 4, 8, 16, 32, 60, 60];
        for (failures, base) in (1..).zip(bases).chain([(u32::MAX, 60)]) {
            let (pause, base) = (backoff(failures), Duration::from_secs(base));
            assert!(base * 9 / 10 <= pause && pause <= base, "{pause:?} after {failures}");
        }
    }
}
