//! The breaker of a Redis node: while the node fails, its calls are refused at once instead of after their deadlines.
//!
//! One per node and process, shared by the links of all workers. Calls and probes record how they ended ([`judge`] has
//! the rules, [`recent`] the calls of the last second). After the first failure the node is probed until a probe
//! succeeds (`health/breaker_prober.rs`); the first answer of the node ends the open state.

mod judge;
mod recent;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(super) use self::judge::BreakerPhase;
use self::judge::{AdmittedShare, BreakerChange, BreakerJudge};
use self::recent::RecentCalls;
use super::topology::Address;
use crate::StoreError;
use weir_time::clock::monotonic;

/// The breakers of all nodes, which all workers share.
#[derive(Default)]
pub(super) struct Breakers {
    nodes: Mutex<HashMap<Address, Arc<Breaker>>>,
    opened: Arc<AtomicU64>,
}

pub(super) struct Breaker {
    address: Address,
    /// The judge's phase, for calls to read without its lock.
    phase: AtomicU8,
    /// True while there are failures in a row, so that a success must be told to the judge.
    is_troubled: AtomicBool,
    /// True while a prober runs.
    is_probed: AtomicBool,
    recent: RecentCalls,
    judge: Mutex<BreakerJudge>,
    /// Calls since the open state ended, of which a share is admitted.
    ramp: AtomicU32,
    opened: AtomicU64,
    /// Number of times that any breaker has opened: that of a node leaves with the node.
    all_opened: Arc<AtomicU64>,
    /// Wakes the prober: there was a failure.
    trouble: Notify,
    /// Notified when the breaker opens: one for each connection of a worker.
    connections: Mutex<Vec<Weak<Notify>>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct BreakerStatus {
    /// Since when calls are refused, and the failure that was the reason.
    pub(super) open: Option<(Instant, Arc<str>)>,
    pub(super) opened: u64,
}

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const RAMP: u8 = 2;

/// One call in so many is admitted after the open state.
const TENTH: u32 = 10;
const HALF: u32 = 2;

impl Breakers {
    /// Returns the breaker of the node at `address`. Those that nothing uses any more are dropped.
    pub(super) fn of(&self, address: &Address) -> Arc<Breaker> {
        let mut breakers = self.nodes.lock();
        if let Some(known) = breakers.get(address) {
            return Arc::clone(known);
        }
        breakers.retain(|_, breaker| Arc::strong_count(breaker) > 1);
        let breaker = Arc::new(Breaker::new(address.clone(), Arc::clone(&self.opened)));
        breakers.insert(address.clone(), Arc::clone(&breaker));
        breaker
    }

    /// Returns how the node's breaker stands, if it has one.
    pub(super) fn status(&self, address: &Address) -> BreakerStatus {
        self.nodes.lock().get(address).map(|breaker| breaker.status()).unwrap_or_default()
    }

    /// Returns the number of times that any breaker has opened, those of former nodes included.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }
}

impl Breaker {
    fn new(address: Address, all_opened: Arc<AtomicU64>) -> Self {
        Self {
            address,
            phase: AtomicU8::new(CLOSED),
            is_troubled: AtomicBool::new(false),
            is_probed: AtomicBool::new(false),
            recent: RecentCalls::default(),
            judge: Mutex::default(),
            ramp: AtomicU32::new(0),
            opened: AtomicU64::new(0),
            all_opened,
            trouble: Notify::new(),
            connections: Mutex::default(),
        }
    }

    pub(super) fn admit(&self, now: impl FnOnce() -> Instant) -> Result<(), StoreError> {
        let is_admitted = match self.phase.load(Relaxed) {
            CLOSED => true,
            OPEN => false,
            _ => match self.judge.lock().share(now()) {
                AdmittedShare::All => true,
                AdmittedShare::None => false,
                AdmittedShare::Tenth => self.ramp.fetch_add(1, Relaxed).is_multiple_of(TENTH),
                AdmittedShare::Half => self.ramp.fetch_add(1, Relaxed).is_multiple_of(HALF),
            },
        };
        if is_admitted {
            return Ok(());
        }
        Err(StoreError::Unavailable(
            format!("{}: not asked, because its last calls failed", self.address).into(),
        ))
    }

    /// Records a call or a probe that the node answered. `sent` is when it was sent.
    pub(super) fn succeeded(&self, sent: Instant) {
        self.recent.count(sent, false);
        if self.is_troubled.load(Relaxed) {
            let mut judge = self.judge.lock();
            let change = judge.succeeded(sent, monotonic());
            self.apply(&judge, change);
        }
    }

    /// Records a call that failed because of the node.
    pub(super) fn failed(&self, sent: Instant, reason: &str) {
        self.recent.count(sent, true);
        let mut judge = self.judge.lock();
        if !self.is_probed.load(Relaxed) {
            return;
        }
        let change = judge.failed(sent, self.recent.of_last_second(sent), reason);
        self.apply(&judge, change);
        drop(judge);
        self.trouble.notify_one();
        if change == Some(BreakerChange::Opened) {
            tracing::warn!(
                node = %self.address, reason,
                "circuit breaker of a Redis node opened; on_store_failure answers for its keys until probes succeed"
            );
            self.end_connections();
        }
    }

    /// Sets whether a prober runs. Without one the breaker is closed, because nothing would end the open state: a node
    /// that leaves the topology while it is open would be refused for good when it comes back.
    pub(super) fn set_probed(&self, is_probed: bool) {
        let mut judge = self.judge.lock();
        self.is_probed.store(is_probed, Relaxed);
        if !is_probed {
            *judge = BreakerJudge::default();
            self.apply(&judge, None);
        }
    }

    /// Resolves after a failure.
    pub(super) async fn trouble(&self) {
        self.trouble.notified().await;
    }

    /// True if probes are needed: there are failures in a row, or it is not closed. Ends the time of partial admission,
    /// if it is over.
    pub(super) fn needs_probes(&self, now: Instant) -> bool {
        !self.is_settled(now) || self.is_troubled.load(Relaxed)
    }

    pub(super) fn phase(&self) -> BreakerPhase {
        self.judge.lock().phase()
    }

    /// Ends the time of partial admission, if it is over. Returns false while it is not.
    fn is_settled(&self, now: Instant) -> bool {
        let mut judge = self.judge.lock();
        let change = judge.settle(now);
        self.apply(&judge, change);
        let lasted = judge.open_for(now);
        let is_closed = judge.phase() == BreakerPhase::Closed;
        drop(judge);
        if let (Some(BreakerChange::Closed), Some(lasted)) = (change, lasted) {
            tracing::info!(
                node = %self.address, seconds = lasted.as_secs_f32(),
                "circuit breaker of a Redis node closed"
            );
        }
        is_closed
    }

    /// Publishes the judge's state. Its lock is held.
    fn apply(&self, judge: &BreakerJudge, change: Option<BreakerChange>) {
        self.is_troubled.store(judge.is_troubled(), Relaxed);
        match change {
            Some(BreakerChange::Opened) => {
                self.opened.fetch_add(1, Relaxed);
                self.all_opened.fetch_add(1, Relaxed);
            }
            Some(BreakerChange::Ramp) => {
                self.ramp.store(0, Relaxed);
                self.recent.clear();
            }
            Some(BreakerChange::Closed) | None => {}
        }
        let phase = match judge.phase() {
            BreakerPhase::Closed => CLOSED,
            BreakerPhase::Open => OPEN,
            BreakerPhase::Ramp { .. } => RAMP,
        };
        self.phase.store(phase, Relaxed);
    }

    /// Registers a connection, which ends when the breaker opens.
    pub(super) fn register(&self, given_up: &Arc<Notify>) {
        let mut connections = self.connections.lock();
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(given_up));
    }

    fn end_connections(&self) {
        let connections = std::mem::take(&mut *self.connections.lock());
        connections.iter().filter_map(Weak::upgrade).for_each(|given_up| given_up.notify_one());
    }

    pub(super) fn reason(&self) -> Option<Arc<str>> {
        self.status().open.map(|(_, reason)| reason)
    }

    fn status(&self) -> BreakerStatus {
        let open = self.judge.lock().open();
        BreakerStatus { open, opened: self.opened.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A node that came back to the topology while its breaker was open was refused for good.
    #[test]
    fn without_a_prober_it_is_closed() {
        let breaker = Breaker::new(Address::new("127.0.0.1", 6379), Arc::default());
        let start = monotonic();
        let fail = || (0..5).for_each(|i| breaker.failed(start + Duration::from_millis(30 * i), "it failed"));
        fail();
        assert!(breaker.admit(monotonic).is_ok(), "nothing would close it");
        breaker.set_probed(true);
        fail();
        assert!(breaker.admit(monotonic).is_err());
        breaker.set_probed(false);
        assert!(breaker.admit(monotonic).is_ok());
        assert!(breaker.status().open.is_none() && !breaker.needs_probes(monotonic()));
    }

    /// A failover takes the breaker of the old master away, and its count with it.
    #[test]
    fn the_openings_of_a_node_that_is_gone_still_count() {
        let (breakers, start) = (Breakers::default(), monotonic());
        let [old, new] = ["10.0.0.1", "10.0.0.2"].map(|host| Address::new(host, 6379));
        for (address, all) in [(&old, 1), (&new, 2)] {
            let breaker = breakers.of(address);
            breaker.set_probed(true);
            (0..5).for_each(|i| breaker.failed(start + Duration::from_millis(30 * i), "it failed"));
            assert_eq!((breakers.status(address).opened, breakers.opened()), (1, all));
        }
        assert_eq!((breakers.status(&old).opened, breakers.opened()), (0, 2));
    }
}
