//! The embedded store: sharded tables in this process, shared by all workers.
//!
//! A decision locks one shard, chosen by its tag, so that all its keys are under one lock; the same
//! pure driver that the vectors define decides in place. Keys are kept as keyed 128-bit digests: no
//! key text, whatever its length, takes more than its entry.

mod budget;
mod hot;
mod index;
mod once;
mod place;
mod table;
mod together;

use std::ops::DerefMut;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use self::budget::Budget;
use self::index::Slot;
use self::once::Marker;
use self::place::Place;
use self::table::Table;
use super::{Decision, Ended, Single, Store, StoreError, Verdicts, check_supported};
use crate::config::{MemoryConfig, WhenFull};
use weir_core::algorithm::{Algorithm, Cells, Kept, MAX_LIMITS, Op, State, Told, decide};
use weir_core::key::{self, KeySecret};
use weir_time::clock::Clock;
use weir_units::Micros;

/// Locks; many more than workers, so that two workers rarely want the same one.
const SHARDS: usize = 128;

/// State in this process. Clones share it.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    shards: Box<[Shard]>,
    budget: Budget,
    clock: Clock,
    /// Second zero of the tables' coarse expiry times.
    epoch: Micros,
    when_full: WhenFull,
    secret: KeySecret,
}

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Shard(Mutex<Table>);

/// Looks at a lock that is held before its thread goes to sleep. A decision holds it for less than a
/// tenth of what falling asleep and being woken cost.
const LOOKS: usize = 200;

/// What the memory store holds, for the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Keys that are kept, lapsed ones that nothing has dropped yet included.
    pub keys: usize,
    /// Bytes of tables, entries and logs.
    pub bytes: usize,
    /// The budget they must stay within.
    pub budget: usize,
    /// Keys that still counted and were dropped to make room for new ones.
    pub evictions: u64,
    /// New keys that found no room.
    pub refusals: u64,
}

impl Shard {
    /// It is tried before it is looked at: the look would fetch the lock's cache line once to read it, and
    /// the lock once more to write it.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.try_lock().unwrap_or_else(|| self.lock_when_free())
    }

    #[cold]
    fn lock_when_free(&self) -> MutexGuard<'_, Table> {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            if !self.0.is_locked()
                && let Some(table) = self.0.try_lock()
            {
                return table;
            }
        }
        self.0.lock()
    }

    /// The lock, if nobody holds it.
    #[inline]
    fn lock_if_free(&self) -> Option<MutexGuard<'_, Table>> {
        self.0.try_lock()
    }
}

impl MemoryStore {
    /// An empty store within `config`'s budget, on `clock`.
    #[must_use]
    pub fn new(config: &MemoryConfig, clock: Clock) -> Self {
        let budget = Budget::new(config.budget);
        let shards = (0..SHARDS).map(|_| Shard(Mutex::new(Table::new(&budget)))).collect();
        // Keys live only here, so their secret may be random; nobody can then aim at one shard.
        let secret = KeySecret::random();
        let epoch = clock.now();
        Self(Arc::new(Shared { shards, budget, clock, epoch, when_full: config.when_full, secret }))
    }

    /// What it holds now.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        let keys = self.0.shards.iter().map(|shard| shard.0.lock().len()).sum();
        self.0.budget.stats(keys)
    }

    /// Drops keys that have lapsed, a bounded part of each shard per call.
    pub fn sweep(&self) {
        const SLOTS_A_SHARD: usize = 2048;
        let second = self.0.second_begun(self.0.clock.now());
        for shard in &self.0.shards {
            shard.0.lock().sweep(SLOTS_A_SHARD, second, &self.0.budget);
        }
    }

    fn decide_now(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        check_supported(decision, op)?;
        let shared = &*self.0;
        let mut at = Place::default();
        shared.locate(|locator| locator.locate(decision, &mut at));
        let limits = &*decision.algorithms();
        let now = shared.clock.now();
        let marker = shared.marker(decision, op, now);
        let mut table = shared.shards[at.shard].lock();
        // Nothing follows under the lock, so that it goes with the decision.
        if let ([cost], None) = (costs, marker) {
            let decided = shared.decide_at(&at, table, limits, (op, *cost, now), out);
            return decided.map_err(|NoRoom| shared.budget.refuse());
        }
        for &cost in costs {
            let first = marker.filter(|marker| !marker.is_set(&table));
            // What has happened before takes nothing and only tells how things stand.
            let cost = if marker.is_some() && first.is_none() { 0 } else { cost };
            if let Some(marker) = first {
                marker.set(shared, &mut table)?;
            }
            let decided = shared.decide_at(&at, &mut *table, limits, (op, cost, now), out);
            if let (Some(marker), Err(_)) = (first, &decided) {
                marker.clear(&mut table);
            }
            decided.map_err(|NoRoom| shared.budget.refuse())?;
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    const AT_ONCE: bool = true;

    async fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        self.decide_now(decision, op, costs, out)
    }

    fn decide_each(&self, singles: &[Single<'_>], out: &mut Ended) {
        self.0.decide_together(singles, out);
    }
}

impl Shared {
    /// Decides once, in a shard that is locked. A lock that is given with its table is released as soon as the
    /// decision is written.
    #[inline]
    fn decide_at(
        &self,
        at: &Place,
        mut table: impl DerefMut<Target = Table>,
        limits: &[Algorithm],
        (op, cost, now): (Op, u64, Micros),
        told: &mut impl Told,
    ) -> Result<(), NoRoom> {
        let mut slots = [None; MAX_LIMITS];
        for (slot, &digest) in slots.iter_mut().zip(&at.digests) {
            *slot = table.find(digest);
        }
        // Of several limits the first: a shard has one hot key, and those of a decision are asked for together.
        if let Some(slot) = slots[0] {
            table.asked(slot);
        }
        let cells = ShardCells { shared: self, table, limits, at, slots: &mut slots, now };
        decide(limits, cells, op, cost, now, told)
    }

    /// The marker of a decision that may happen only once.
    fn marker(&self, decision: &Decision<'_>, op: Op, now: Micros) -> Option<Marker> {
        let id = decision.once(op)?;
        let Decision { strategy, subject, .. } = decision;
        let write = |text: &mut Vec<u8>| key::write_refund_name(text, strategy, subject, id);
        let digest = self.locate(|locator| locator.digest(write));
        Some(Marker { digest, now })
    }

    /// The tables' second that has begun at `time`: what is due by then has lapsed.
    fn second_begun(&self, time: Micros) -> u64 {
        time.0.saturating_sub(self.epoch.0) / Micros::from_secs(1).0
    }

    /// The first of the tables' seconds that begins no earlier than `time`.
    fn second_due(&self, time: Micros) -> u64 {
        Micros(time.0.saturating_sub(self.epoch.0)).secs_ceil()
    }
}

/// The states of one decision, within its locked shard.
struct ShardCells<'a, T> {
    shared: &'a Shared,
    table: T,
    limits: &'a [Algorithm],
    at: &'a Place,
    slots: &'a mut [Option<Slot>; MAX_LIMITS],
    now: Micros,
}

/// The budget is used up, and nothing may be dropped.
struct NoRoom;

impl<T: DerefMut<Target = Table>> Cells for ShardCells<'_, T> {
    type Full = NoRoom;

    fn get(&self, index: usize) -> Option<&State> {
        self.table.get(self.slots.get(index).copied().flatten()?)
    }

    fn phase(&self, index: usize) -> u64 {
        self.at.phases.get(index).copied().unwrap_or(0)
    }

    fn reserve(&mut self, count: usize) -> Result<(), NoRoom> {
        let budget = &self.shared.budget;
        let is_over = budget.is_over();
        if count == 0 && !is_over {
            return Ok(());
        }
        let second = self.shared.second_begun(self.now);
        let keep: SmallVec<[Slot; MAX_LIMITS]> = self.slots.iter().flatten().copied().collect();
        let evict = self.shared.when_full == WhenFull::Evict;
        // Boxed states take bytes beside their place, so a full budget must stop them before they are
        // charged.
        let has_boxed = || self.limits.iter().any(|limit| limit.engine().is_boxed());
        if is_over && has_boxed() && !self.table.relieve(second, budget, evict, &keep) {
            return Err(NoRoom);
        }
        if count > 0 && !self.table.reserve(count, second, budget, evict, &keep) {
            return Err(NoRoom);
        }
        Ok(())
    }

    // Inlined, so that what is read and written in turn stays in registers: copies of what was just written in
    // parts cost more than the arithmetic.
    #[inline(always)]
    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        let mut new = None;
        let state = match self.slots[index] {
            Some(slot) => self.table.state_mut(slot),
            None => &mut new,
        };
        let before = state.as_ref().map_or(0, State::heap_bytes);
        let kept = change(state);
        let after = state.as_ref().map_or(0, State::heap_bytes);
        let is_gone = state.is_none();
        self.shared.budget.moved(before, after);
        let lapses = self.shared.second_due(Micros(self.now.0.saturating_add(kept.lasts.0)));
        match (self.slots[index], new) {
            (Some(slot), _) if is_gone => {
                self.table.remove(slot);
                self.slots[index] = None;
            }
            (Some(slot), _) => self.table.lapses(slot, lapses, kept.exhausted),
            (None, Some(state)) => {
                let slot = self.table.insert(self.at.digests[index], state, lapses, kept.exhausted);
                self.slots[index] = Some(slot);
            }
            (None, None) => {}
        }
    }
}
