//! Decisions at keys that were located before, for nodes that decide by themselves (`local.rs`).

use weir_core::algorithm::{Algorithm, Cells, Kept, Op, State, decide};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::MemoryStore;
use super::cells::ShardCells;
use super::place::{Locator, StatePlace};
use crate::{Decision, LimitSet, StoreError, Verdicts};

/// Location of the states of a decision. Owns its data.
pub(crate) struct LocatedKeys(StatePlace);

/// One operation on the limits of a strategy, at located keys.
#[derive(Clone, Copy)]
pub(crate) struct LocatedDecision<'a> {
    pub(crate) strategy: &'a Strategy,
    pub(crate) limits: LimitSet,
    pub(crate) op: Op,
    pub(crate) cost: u64,
}

impl LocatedKeys {
    pub(crate) fn digests(&self) -> &[u128] {
        &self.0.digests
    }
}

impl<'d> Locator<'_, 'd> {
    /// Locates the keys of `decision`. Those of a strategy with other numbers and the same engines are the same.
    pub(crate) fn keys_of(&mut self, decision: &Decision<'d>) -> LocatedKeys {
        let mut place = StatePlace::default();
        self.locate(decision, &mut place);
        LocatedKeys(place)
    }
}

impl LocatedDecision<'_> {
    /// Iterates over the algorithms, in the order of the keys.
    pub(crate) fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        let all = self.strategy.algorithms().iter().enumerate();
        all.filter(|(index, _)| self.limits.has(*index)).map(|(_, algorithm)| *algorithm)
    }
}

impl MemoryStore {
    /// Locates the keys of decisions, which share what their keys have in common.
    pub(crate) fn locate_each<'d, T>(&self, find: impl FnOnce(&mut Locator<'_, 'd>) -> T) -> T {
        self.0.locate(find)
    }

    /// Decides, after each limit was charged up to `least_used` units of the limit at this index, if that is more than
    /// it has used. All of it under one lock.
    pub(crate) fn decide_located(
        &self,
        keys: &LocatedKeys,
        decision: LocatedDecision<'_>,
        mut least_used: impl FnMut(usize) -> Option<u64>,
    ) -> Result<Verdicts, StoreError> {
        let (shared, at) = (&*self.0, &keys.0);
        let limits: Vec<Algorithm> = decision.algorithms().collect();
        let mut stamp = shared.time.stamp();
        let mut table = shared.shards[at.shard].lock();
        shared.date(&mut table, &mut stamp);
        let mut slots = at.slots(&table);
        let (strategy, table) = (decision.strategy, &mut *table);
        let mut cells = ShardCells { shared, table, strategy, limits: &limits, at, slots: &mut slots, stamp };
        let mut verdicts = Verdicts::default();
        let mut charge = || {
            for (index, limit) in limits.iter().enumerate() {
                if let Some(least) = least_used(index) {
                    charge_up_to(least, limit, OneLimit { cells: &mut cells, index }, stamp.now)?;
                }
            }
            decide(&limits, &mut cells, decision.op, decision.cost, stamp.now, &mut verdicts)
        };
        charge().map_err(|why| shared.budget.refuse(why))?;
        Ok(verdicts)
    }
}

fn charge_up_to<C: Cells>(least: u64, limit: &Algorithm, mut cells: C, now: Micros) -> Result<(), C::Full> {
    let (limits, mut found) = (std::slice::from_ref(limit), Verdicts::default());
    decide(limits, &mut cells, Op::Peek, 0, now, &mut found)?;
    let used = found.limits.first().map_or(0, |one| one.used_before(limit));
    if least > used {
        decide(limits, &mut cells, Op::Force, least - used, now, &mut Verdicts::default())?;
    }
    Ok(())
}

struct OneLimit<'c, C> {
    cells: &'c mut C,
    index: usize,
}

impl<C: Cells> Cells for OneLimit<'_, C> {
    type Full = C::Full;

    fn get(&self, _: usize) -> Option<&State> {
        self.cells.get(self.index)
    }

    fn phase(&self, _: usize) -> u64 {
        self.cells.phase(self.index)
    }

    fn reserve(&mut self, count: usize) -> Result<(), C::Full> {
        self.cells.reserve(count)
    }

    fn put(&mut self, _: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        self.cells.put(self.index, change);
    }
}
