//! Leases in this process. They are never evicted: a lease that is gone is a permit too many.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::budget::{Budget, NoRoom};
use super::owners::OwnerId;
use super::{MemoryStore, SHARDS, SharedMemory};
use crate::StoreError;
use crate::lease::{LeaseAsk, LeaseStore, LeasesAsk};
use weir_core::key;
use weir_core::lease::{
    LeaseAnswer, LeaseCall, LeaseOp, LeaseOutcome, LeasePage, LeaseRefusal, LeaseSet, WorkOutcome,
};
use weir_core::strategy::Strategy;
use weir_units::Micros;

/// Bytes counted for a key of leases, beside its leases: its entry and its controller's state.
const KEY_BYTES: usize = 640;

/// Bytes counted for a lease, beside its id: its record, its end, and their parts of the tables.
const LEASE_BYTES: usize = 320;

/// Shards whose expired leases one sweep drops. A call drops those of its own key.
const SWEPT_SHARDS: usize = 8;

type Table = HashMap<u128, HeldKey, foldhash::fast::RandomState>;

/// The leases of all keys.
pub(super) struct LeaseTables {
    shards: Box<[Mutex<Table>]>,
    /// Shard at which the next sweep begins.
    hand: AtomicUsize,
}

/// The leases of one key.
struct HeldKey {
    set: LeaseSet,
    /// Its rule determines when the leases and the controller's state expire.
    strategy: Arc<Strategy>,
    owner: OwnerId,
    /// Bytes counted for it.
    bytes: usize,
}

impl Default for LeaseTables {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), hand: AtomicUsize::new(0) }
    }
}

impl LeaseTables {
    /// Number of keys with leases.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Drops expired leases of some of the keys.
    pub(super) fn sweep(&self, now: Micros, budget: &Budget) {
        let first = self.hand.fetch_add(SWEPT_SHARDS, Relaxed);
        for index in first..first + SWEPT_SHARDS {
            let mut table = self.shards[index % SHARDS].lock();
            table.retain(|_, held| {
                if let Some(rule) = held.strategy.permits() {
                    held.set.expire(rule, now);
                }
                held.settle(budget)
            });
            if table.len() * 4 < table.capacity() {
                let capacity = table.len() * 2;
                table.shrink_to(capacity);
            }
        }
    }
}

impl LeaseStore for MemoryStore {
    async fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        self.0.lease(ask)
    }

    async fn leases(&self, ask: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        Ok(self.0.leases(ask))
    }
}

impl SharedMemory {
    fn leases(&self, ask: &LeasesAsk<'_>) -> LeasePage {
        let write = |text: &mut Vec<u8>| key::write_lease_name(text, ask.strategy, &ask.subject);
        let digest = self.locate(|locator| locator.digest(write));
        let table = self.leases.shards[(digest >> 64) as usize % SHARDS].lock();
        let now = self.time.steady();
        match table.get(&digest) {
            Some(held) => held.set.page(now, ask.after),
            None => LeaseSet::default().page(now, None),
        }
    }

    fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        let rule = ask.rule()?;
        let write = |text: &mut Vec<u8>| key::write_lease_name(text, ask.strategy, &ask.subject);
        let digest = self.locate(|locator| locator.digest(write));
        let (partition, jitter) = (ask.partition(), ask.jitter());
        let shard = &self.leases.shards[(digest >> 64) as usize % SHARDS];
        let mut table = shard.lock();
        let call = LeaseCall { now: self.time.steady(), id: ask.id, op: ask.op, partition, jitter };
        let held = table.entry(digest).or_insert_with(|| HeldKey {
            set: LeaseSet::default(),
            strategy: Arc::clone(ask.strategy),
            owner: self.budget.owners().number(ask.strategy.owner()),
            bytes: 0,
        });
        if !Arc::ptr_eq(&held.strategy, ask.strategy) {
            held.strategy = Arc::clone(ask.strategy);
        }
        let mut answer = held.set.call(rule, &call);
        let is_new = matches!(answer.outcome, LeaseOutcome::Held { is_new: true, .. });
        if is_new && !held.pay(&self.budget) {
            let op = LeaseOp::Release { outcome: WorkOutcome::Ignored, rtt: None };
            answer = held.set.call(rule, &LeaseCall { op, ..call });
            answer.outcome = LeaseOutcome::Refused { refusal: LeaseRefusal::NoMemory, bound: None };
            // It counts the refusal; the answer says the rest.
            let _ = self.budget.refuse(NoRoom::Budget);
        }
        if !held.settle(&self.budget) {
            table.remove(&digest);
        }
        Ok(answer)
    }
}

impl HeldKey {
    /// Takes the additional bytes that it needs. False if the budget does not have them.
    fn pay(&mut self, budget: &Budget) -> bool {
        let more = self.needed().saturating_sub(self.bytes);
        let scarce = budget.owners().is_above_share(self.owner, more);
        let taken = if scarce { budget.take_unless_scarce(more) } else { budget.take(more) };
        if taken {
            budget.owners().took(self.owner, more);
            self.bytes += more;
        }
        taken
    }

    /// Returns the bytes that it no longer needs. False if it is empty.
    fn settle(&mut self, budget: &Budget) -> bool {
        let is_fresh = self.set.is_fresh();
        let needed = if is_fresh { 0 } else { self.needed() };
        // Only a test's sample creates a key without paying for it.
        budget.moved(self.owner, self.bytes, needed);
        self.bytes = needed;
        !is_fresh
    }

    fn needed(&self) -> usize {
        KEY_BYTES + self.set.len() * LEASE_BYTES + self.set.id_bytes()
    }
}
