//! Leases in this process. They are never evicted: a lease that is gone is a permit too many.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_core::key;
use weir_core::strategy::Strategy;
use weir_store::StoreError;
use weir_store::backend::{FeatureStates, ProcessStates, StateOwner};

use crate::model::{
    LeaseAnswer, LeaseCall, LeaseOp, LeaseOutcome, LeasePage, LeaseRefusal, LeaseSet, WorkOutcome,
};
use crate::store::{LeaseAsk, LeaseStore, LeasesAsk};

/// Parts of the table; many more than workers, so that two workers rarely contend for a lock.
const SHARDS: usize = 128;

/// Bytes counted for a key of leases, beside its leases: its entry and its controller's state.
const KEY_BYTES: usize = 640;

/// Bytes counted for a lease, beside its id: its record, its end, and their parts of the tables.
const LEASE_BYTES: usize = 320;

/// Shards whose expired leases one sweep drops. A call drops those of its own key.
const SWEPT_SHARDS: usize = 8;

type Table = HashMap<u128, HeldKey, foldhash::fast::RandomState>;

/// The leases of this process. Clones share them.
#[derive(Clone)]
pub struct ProcessLeases(Arc<LeaseTables>);

/// The leases of all keys.
struct LeaseTables {
    shards: Box<[Mutex<Table>]>,
    /// Shard at which the next sweep begins.
    hand: AtomicUsize,
    states: ProcessStates,
}

/// The leases of one key.
struct HeldKey {
    set: LeaseSet,
    /// Strategy whose rule determines when the leases and the controller's state expire.
    strategy: Arc<Strategy>,
    owner: StateOwner,
    /// Bytes counted for it.
    bytes: usize,
}

impl ProcessLeases {
    /// Creates a table without leases, beside the states of a backend.
    #[must_use]
    pub fn new(states: ProcessStates) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let tables = Arc::new(LeaseTables { shards, hand: AtomicUsize::new(0), states });
        let joined: Weak<LeaseTables> = Arc::downgrade(&tables);
        tables.states.join(joined);
        Self(tables)
    }
}

impl FeatureStates for LeaseTables {
    fn keys(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Drops expired leases of some of the keys.
    fn sweep(&self) {
        let now = self.states.clock().steady();
        let first = self.hand.fetch_add(SWEPT_SHARDS, Relaxed);
        for index in first..first + SWEPT_SHARDS {
            let mut table = self.shards[index % SHARDS].lock();
            table.retain(|_, held| {
                if let Some(rule) = held.strategy.permits() {
                    held.set.expire(rule, now);
                }
                held.settle(&self.states)
            });
            if table.len() * 4 < table.capacity() {
                let capacity = table.len() * 2;
                table.shrink_to(capacity);
            }
        }
    }
}

impl LeaseStore for ProcessLeases {
    async fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        self.0.lease(ask)
    }

    async fn leases(&self, ask: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        Ok(self.0.leases(ask))
    }
}

impl LeaseTables {
    fn leases(&self, ask: &LeasesAsk<'_>) -> LeasePage {
        let digest = self.states.digest(&|text| key::write_lease_name(text, ask.strategy, &ask.subject));
        let table = self.shard(digest).lock();
        let now = self.states.clock().steady();
        match table.get(&digest) {
            Some(held) => held.set.page(now, ask.after),
            None => LeaseSet::default().page(now, None),
        }
    }

    fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        let rule = ask.rule()?;
        let digest = self.states.digest(&|text| key::write_lease_name(text, ask.strategy, &ask.subject));
        let (partition, jitter) = (ask.partition(), ask.jitter());
        let mut table = self.shard(digest).lock();
        let now = self.states.clock().steady();
        let call = LeaseCall { now, id: ask.id, op: ask.op, partition, jitter };
        let held = table.entry(digest).or_insert_with(|| HeldKey {
            set: LeaseSet::default(),
            strategy: Arc::clone(ask.strategy),
            owner: self.states.number_of(ask.strategy.owner()),
            bytes: 0,
        });
        if !Arc::ptr_eq(&held.strategy, ask.strategy) {
            held.strategy = Arc::clone(ask.strategy);
        }
        let mut answer = held.set.call(rule, &call);
        let is_new = matches!(answer.outcome, LeaseOutcome::Held { is_new: true, .. });
        if is_new && !held.pay(&self.states) {
            let op = LeaseOp::Release { outcome: WorkOutcome::Ignored, rtt: None };
            answer = held.set.call(rule, &LeaseCall { op, ..call });
            answer.outcome = LeaseOutcome::Refused { refusal: LeaseRefusal::NoMemory, bound: None };
            self.states.refuse();
        }
        if !held.settle(&self.states) {
            table.remove(&digest);
        }
        Ok(answer)
    }

    fn shard(&self, digest: u128) -> &Mutex<Table> {
        &self.shards[(digest >> 64) as usize % SHARDS]
    }
}

impl HeldKey {
    /// Takes the additional bytes that it needs. False if the budget does not have them.
    fn pay(&mut self, states: &ProcessStates) -> bool {
        let more = self.needed().saturating_sub(self.bytes);
        let taken = states.take(self.owner, more);
        if taken {
            self.bytes += more;
        }
        taken
    }

    /// Returns the bytes that it no longer needs. False if it is empty.
    fn settle(&mut self, states: &ProcessStates) -> bool {
        let is_fresh = self.set.is_fresh();
        let needed = if is_fresh { 0 } else { self.needed() };
        // Only a test's sample creates a key without paying for it.
        states.moved(self.owner, self.bytes, needed);
        self.bytes = needed;
        !is_fresh
    }

    fn needed(&self) -> usize {
        KEY_BYTES + self.set.len() * LEASE_BYTES + self.set.id_bytes()
    }
}
