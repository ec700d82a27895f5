//! The embedded store: sharded tables in this process, shared by all workers.
//!
//! A decision locks one shard, chosen by its tag, so that all its keys are under one lock; the same
//! pure driver that the vectors define decides in place. Keys are kept as keyed 112-bit digests: no
//! key text, whatever its length, takes more than its entry.
//!
//! The budget is shared among strategies (`owners.rs`), so that a flood of one does not reset the keys of another.

mod backend;
mod budget;
mod cells;
mod cost_cells;
mod costs;
mod hot;
pub(crate) mod index;
mod located;
mod once;
mod owners;
mod place;
mod table;
mod time;
mod together;

use std::ops::DerefMut;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use weir_config::{MemoryConfig, WhenFull};
use weir_core::algorithm::{Algorithm, NotOnce, Op, VerdictSink, decide, decide_once};
use weir_core::key::{self, KeySecret, Operation};
use weir_core::strategy::{Owner, Strategy};
use weir_time::clock::Clock;

use self::budget::{Budget, NoRoom};
use self::cells::ShardCells;
pub(crate) use self::located::{LocatedDecision, LocatedKeys};
use self::once::{Marker, OnceCells};
pub(crate) use self::place::Locator;
use self::place::StatePlace;
use self::table::ShardTable;
use self::time::{StoreTime, WallReading};
use super::{
    Answers, BudgetDecision, Decision, Once, Store, StoreAnswer, StoreError, Verdicts, check_supported,
};
use crate::backend::{FeatureStates, MemoryStats};

/// Number of shards; many more than workers, so that two workers rarely contend for a lock.
const SHARDS: usize = 128;

/// State in this process. Clones share it.
#[derive(Clone)]
pub struct MemoryStore(Arc<SharedMemory>);

struct SharedMemory {
    shards: Box<[Shard]>,
    /// States that features keep beside these.
    features: Mutex<Vec<Weak<dyn FeatureStates>>>,
    budget: Budget,
    time: StoreTime,
    when_full: WhenFull,
    secret: KeySecret,
}

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Shard(Mutex<ShardTable>);

/// Spins before a thread that waits for a lock goes to sleep. A decision holds a lock for less than a tenth of what
/// falling asleep and waking up cost.
const LOOKS: usize = 200;

impl Shard {
    /// Tries to lock before looking at the lock: looking first would fetch its cache line twice, to read and to
    /// write.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, ShardTable> {
        self.0.try_lock().unwrap_or_else(|| self.lock_when_free())
    }

    #[cold]
    fn lock_when_free(&self) -> MutexGuard<'_, ShardTable> {
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

    #[inline]
    fn lock_if_free(&self) -> Option<MutexGuard<'_, ShardTable>> {
        self.0.try_lock()
    }
}

impl MemoryStore {
    /// An empty store within `config`'s budget, on `clock`.
    pub fn new(config: &MemoryConfig, clock: Clock) -> Self {
        let budget = Budget::new(config);
        let shards = (0..SHARDS).map(|_| Shard(Mutex::new(ShardTable::new(&budget)))).collect();
        // Keys live only here, so their secret may be random; then callers cannot aim at one shard.
        let secret = KeySecret::random();
        let (features, when_full) = (Mutex::default(), config.when_full);
        let time = StoreTime::new(clock);
        Self(Arc::new(SharedMemory { shards, features, budget, time, when_full, secret }))
    }

    /// Sets the configured strategies and domains, at the start and at each reload. If `config` sets no share, each
    /// may hold an equal part of the budget when it is scarce, and at least a tenth. Keys of removed ones stay until
    /// they expire or are evicted. Until this is called, the owners of existing keys share the budget.
    pub fn share_among<'o>(&self, owners: impl IntoIterator<Item = &'o Owner>) {
        self.0.budget.owners().share_among(owners.into_iter().map(Owner::name));
    }

    /// Current statistics.
    pub fn stats(&self) -> MemoryStats {
        let keys: usize = self.0.shards.iter().map(|shard| shard.0.lock().len()).sum();
        let features = self.0.features();
        self.0.budget.stats(keys + features.iter().map(|states| states.keys()).sum::<usize>())
    }

    /// Drops expired keys, a bounded part of each shard per call.
    pub fn sweep(&self) {
        const SLOTS_A_SHARD: usize = 2048;
        self.0.features().iter().for_each(|states| states.sweep());
        let mut stamp = self.0.time.compare();
        for shard in &self.0.shards {
            let mut table = shard.0.lock();
            self.0.date(&mut table, &mut stamp);
            table.sweep(SLOTS_A_SHARD, self.0.time.second_begun(stamp), &self.0.budget);
        }
    }
}

impl Store for MemoryStore {
    const AT_ONCE: bool = true;

    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        if decisions.iter().all(Decision::is_simple) {
            return self.0.decide_together(decisions, answers);
        }
        for decision in decisions {
            if let Err(error) = check_supported(decision) {
                answers.fail(decision.costs.len(), &error);
            } else if let Some(Once::Record(operation, id)) = decision.once() {
                self.0.decide_once(decision, (operation, id), answers);
            } else {
                self.0.decide_alone(decision, answers);
            }
        }
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        StoreAnswer::Ready(
            self.0.decide_costs(decision).map(|verdict| Verdicts::of_costs(decision.costed, verdict)),
        )
    }
}

impl SharedMemory {
    /// The states of features. Those that nobody holds any more are left out from now on.
    fn features(&self) -> Vec<Arc<dyn FeatureStates>> {
        let mut features = self.features.lock();
        features.retain(|states| states.strong_count() > 0);
        features.iter().filter_map(Weak::upgrade).collect()
    }

    /// Decides all costs of one decision, under one lock.
    fn decide_alone(&self, decision: &Decision<'_>, answers: &mut Answers) {
        let at = self.locate_one(decision);
        let limits = &*decision.algorithms();
        let mut stamp = self.time.stamp();
        let marker = self.marker(decision);
        let mut table = self.shards[at.shard].lock();
        self.date(&mut table, &mut stamp);
        for &cost in decision.costs {
            let first = marker.filter(|marker| !marker.is_set(&table));
            // A repeated one charges nothing and only reports the limits.
            let cost = if marker.is_some() && first.is_none() { 0 } else { cost };
            if let Some(marker) = first
                && let Err(error) = marker.set(self, (&mut table, stamp), decision.strategy.owner())
            {
                answers.fail(1, &error);
                continue;
            }
            let rules = (&**decision.strategy, limits);
            if let Err(why) = self.decide_at(&at, &mut *table, rules, (decision.op, cost, stamp), answers) {
                if let Some(marker) = first {
                    marker.clear(&mut table, &self.budget);
                }
                answers.fail(1, &self.budget.refuse(why));
            }
        }
    }

    /// Decides once, in a locked shard. A lock that is given with its table is released as soon as the decision is
    /// written.
    #[inline]
    fn decide_at(
        &self,
        at: &StatePlace,
        mut table: impl DerefMut<Target = ShardTable>,
        (strategy, limits): (&Strategy, &[Algorithm]),
        (op, cost, stamp): (Op, u64, WallReading),
        sink: &mut impl VerdictSink,
    ) -> Result<(), NoRoom> {
        let mut slots = at.slots(&table);
        // Only the first limit's key can be hot: a shard has one hot key, and the keys of a decision are used
        // together.
        if let Some(slot) = slots[0] {
            table.asked(slot);
        }
        let cells = ShardCells { shared: self, table, strategy, limits, at, slots: &mut slots, stamp };
        decide(limits, cells, op, cost, stamp.now, sink)
    }

    /// Decides under an id, with a record in the same shard.
    fn decide_once(
        &self,
        decision: &Decision<'_>,
        (operation, id): (Operation, &str),
        answers: &mut Answers,
    ) {
        let at = self.locate_one(decision);
        let Decision { strategy, subject, op, costs, .. } = *decision;
        let limits = &*decision.algorithms();
        let write = |text: &mut Vec<u8>| key::write_record_name(text, operation, strategy, &subject, id);
        let digest = self.locate(|locator| locator.digest(write));
        let mut stamp = self.time.stamp();
        let mut table = self.shards[at.shard].lock();
        self.date(&mut table, &mut stamp);
        let steady = self.time.steady();
        for &cost in costs {
            let mut slots = at.slots(&table);
            let (table, at) = (&mut *table, &at);
            let cells = ShardCells { shared: self, table, strategy, limits, at, slots: &mut slots, stamp };
            let cells = OnceCells { cells, digest, steady };
            let decided = decide_once(limits, cells, op, cost, stamp.now, answers);
            match decided {
                Ok(()) => {}
                Err(NotOnce::OtherCost(known)) => answers.fail(1, &StoreError::OtherCost(known)),
                Err(NotOnce::Full(why)) => answers.fail(1, &self.budget.refuse(why)),
            }
        }
    }

    fn marker(&self, decision: &Decision<'_>) -> Option<Marker> {
        let Some(Once::Marker(id)) = decision.once() else { return None };
        let Decision { strategy, subject, .. } = decision;
        let write = |text: &mut Vec<u8>| key::write_refund_name(text, strategy, subject, id);
        let digest = self.locate(|locator| locator.digest(write));
        Some(Marker { digest, steady: self.time.steady() })
    }

    /// Adjusts expiry times of a locked table to `stamp`, or both to a newer reading, after a step of the wall clock.
    #[inline]
    fn date(&self, table: &mut ShardTable, stamp: &mut WallReading) {
        if table.ahead() != stamp.ahead {
            self.date_anew(table, stamp);
        }
    }

    #[cold]
    fn date_anew(&self, table: &mut ShardTable, stamp: &mut WallReading) {
        *stamp = self.time.compare();
        if table.ahead() != stamp.ahead {
            table.redate(*stamp, &self.time);
        }
    }
}
