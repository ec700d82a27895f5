//! Access of the pure driver to the states of a decision.

use std::ops::DerefMut;

use smallvec::SmallVec;
use weir_config::WhenFull;
use weir_core::algorithm::{Algorithm, Cells, Kept, MAX_LIMITS, State};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::SharedMemory;
use super::budget::NoRoom;
use super::index::Slot;
use super::owners::{KEY_BYTES, OwnerId};
use super::place::StatePlace;
use super::table::{Claim, ShardTable};
use super::time::WallReading;

/// The states of one decision, within its locked shard.
pub(super) struct ShardCells<'a, T> {
    pub(super) shared: &'a SharedMemory,
    pub(super) table: T,
    pub(super) strategy: &'a Strategy,
    pub(super) limits: &'a [Algorithm],
    pub(super) at: &'a StatePlace,
    pub(super) slots: &'a mut [Option<Slot>; MAX_LIMITS],
    pub(super) stamp: WallReading,
}

impl<T: DerefMut<Target = ShardTable>> Cells for ShardCells<'_, T> {
    type Full = NoRoom;

    fn get(&self, index: usize) -> Option<&State> {
        self.table.get(self.slots.get(index).copied().flatten()?)
    }

    fn phase(&self, index: usize) -> u64 {
        self.at.phases.get(index).copied().unwrap_or(0)
    }

    fn reserve(&mut self, count: usize) -> Result<(), NoRoom> {
        // Nearly all decisions are about existing keys.
        if count == 0 && !self.shared.budget.is_scarce() { Ok(()) } else { self.reserve_within_share(count) }
    }

    // Inlined, so that values stay in registers: copies of partly written values cost more than the arithmetic.
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
        if before != after {
            self.moved(index, before, after);
        }
        let until = Micros(self.stamp.now.0.saturating_add(kept.lasts.0));
        let expires = self.shared.time.second_due(until, self.stamp.ahead);
        match (self.slots[index], new) {
            (Some(slot), _) if is_gone => {
                self.table.remove(slot, &self.shared.budget);
                self.slots[index] = None;
            }
            (Some(slot), _) => self.table.expires(slot, expires, kept.exhausted),
            (None, Some(state)) => {
                let (owner, budget) = (self.owner(), &self.shared.budget);
                let kept = (expires, kept.exhausted);
                let slot = self.table.insert(self.at.digests[index], state, kept, owner, budget);
                self.slots[index] = Some(slot);
            }
            (None, None) => {}
        }
    }
}

impl<T: DerefMut<Target = ShardTable>> ShardCells<'_, T> {
    /// [`Cells::reserve`] for a new key, or for a log that grows and may evict others.
    fn reserve_within_share(&mut self, count: usize) -> Result<(), NoRoom> {
        // Heap bytes come on top of a slot, so a full budget must stop such states before they are charged.
        let has_boxed = self.limits.iter().any(|limit| limit.engine().is_boxed());
        if count == 0 && !has_boxed {
            return Ok(());
        }
        let budget = &self.shared.budget;
        let slots = self.slots.iter().take(self.at.digests.len());
        let keep: SmallVec<[Slot; MAX_LIMITS]> = slots.flatten().copied().collect();
        let claim = self.claim(&keep);
        if has_boxed && budget.is_over() && !self.table.relieve(claim, budget) {
            return Err(NoRoom::Budget);
        }
        if has_boxed && budget.is_scarce() && budget.owners().is_above_share(claim.owner, 0) {
            let growth = self.growth();
            if growth > 0 && !self.table.make_up_for(growth, claim, budget) {
                return Err(NoRoom::Budget);
            }
        }
        if count > 0 && !self.table.reserve(count, claim, budget) {
            return Err(NoRoom::Budget);
        }
        Ok(())
    }

    /// Stores `state`, which is that of an id, for at least `lasts`, and leaves room for `more` keys after it. It counts as
    /// exhausted, so it is not evicted before.
    pub(super) fn put_beside(
        &mut self,
        digest: u128,
        (state, lasts): (State, Micros),
        more: usize,
    ) -> Result<(), NoRoom> {
        let expires = self.shared.time.second_after(self.stamp, lasts);
        let budget = &self.shared.budget;
        if let Some(slot) = self.table.find(digest) {
            let owner = self.table.owner(slot);
            let place = self.table.state_mut(slot);
            let (before, after) = (place.as_ref().map_or(0, State::heap_bytes), state.heap_bytes());
            *place = Some(state);
            self.table.expires(slot, expires, true);
            budget.moved(owner, before, after);
            return Ok(());
        }
        let bytes = KEY_BYTES + state.heap_bytes();
        let keep: SmallVec<[Slot; MAX_LIMITS]> = self.slots.iter().flatten().copied().collect();
        let owner = budget.owners().number_of_ids(self.strategy.owner());
        let claim = Claim { owner, ..self.claim(&keep) };
        if !self.table.has_room_for_id(bytes, claim, budget) {
            return Err(NoRoom::Ids);
        }
        if budget.is_over() && !self.table.relieve(claim, budget)
            || !self.table.reserve(1 + more, claim, budget)
        {
            return Err(NoRoom::Budget);
        }
        budget.moved(claim.owner, 0, state.heap_bytes());
        self.table.insert(digest, state, (expires, true), claim.owner, budget);
        Ok(())
    }

    /// Stores `state`, which is no limit's, for `lasts`, in room that was reserved. It is not evicted before.
    pub(super) fn put_reserved(&mut self, digest: u128, state: State, lasts: Micros) {
        let expires = self.shared.time.second_after(self.stamp, lasts);
        let budget = &self.shared.budget;
        let after = state.heap_bytes();
        if let Some(slot) = self.table.find(digest) {
            let owner = self.table.owner(slot);
            let before = self.table.state_mut(slot).replace(state).as_ref().map_or(0, State::heap_bytes);
            self.table.expires(slot, expires, true);
            return budget.moved(owner, before, after);
        }
        let owner = self.owner();
        budget.moved(owner, 0, after);
        self.table.insert(digest, state, (expires, true), owner, budget);
    }

    /// Removes a state that is no limit's.
    pub(super) fn drop_beside(&mut self, digest: u128) {
        if let Some(slot) = self.table.find(digest) {
            self.table.discard(slot, &self.shared.budget);
        }
    }

    fn claim<'k>(&self, keep: &'k [Slot]) -> Claim<'k> {
        Claim {
            owner: self.owner(),
            second: self.shared.time.second_begun(self.stamp),
            evict: self.shared.when_full == WhenFull::Evict,
            keep,
        }
    }

    /// Bytes by which the existing states may grow with a charge.
    fn growth(&self) -> usize {
        let states = self.limits.iter().zip(self.slots.iter());
        let growth = |(limit, slot): (&Algorithm, &Option<Slot>)| {
            Some(self.table.get((*slot)?)?.growth(limit, self.stamp.now))
        };
        states.filter_map(growth).sum()
    }

    /// Records that the heap bytes of limit `index` changed from `before` to `after`.
    #[cold]
    fn moved(&self, index: usize, before: usize, after: usize) {
        let owner = self.slots[index].map_or_else(|| self.owner(), |slot| self.table.owner(slot));
        self.shared.budget.moved(owner, before, after);
    }

    fn owner(&self) -> OwnerId {
        self.shared.budget.owners().number(self.strategy.owner())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_core::algorithm::{Op, Rate};
    use weir_core::key::Subject;
    use weir_core::strategy::{FailurePolicy, Field, Limit, Scope};
    use weir_time::clock::{Clock, ManualClock};

    use super::*;
    use crate::memory::MemoryStore;
    use crate::memory::owners::KEY_BYTES;
    use crate::{Decision, decide_one};
    use weir_config::MemoryConfig;

    fn strategy(name: &str, algorithms: &[Algorithm]) -> Arc<Strategy> {
        let limit = |(index, algorithm): (usize, &Algorithm)| Limit {
            name: format!("limit-{index}").into(),
            scope: Scope::new(&[Field::Consumer]),
            algorithm: *algorithm,
        };
        let limits = algorithms.iter().enumerate().map(limit).collect();
        Arc::new(Strategy::new(name, limits, false, FailurePolicy::Error).unwrap())
    }

    /// Keys come, grow, are given back, reset, evicted and expire; what each owner holds is what its keys are.
    #[test]
    fn what_an_owner_holds_is_what_its_keys_are() {
        let minute = Micros::from_secs(60);
        let bucket = Algorithm::bucket(5, Rate { count: 1, period: minute }).unwrap();
        let log = Algorithm::sliding_log(40, minute).unwrap();
        let slots = Algorithm::bucketed_window(9, minute, 60, true).unwrap();
        let strategies =
            [strategy("one", &[bucket]), strategy("two", &[log, bucket]), strategy("three", &[slots])];
        let clock = ManualClock::at(Micros(1_704_067_200_000_000));
        let config = MemoryConfig { budget: 1 << 20, ..MemoryConfig::default() };
        let store = MemoryStore::new(&config, Clock::Manual(clock.clone()));
        let mut random = 1_u64;
        for step in 0..120_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let strategy = &strategies[(random >> 60) as usize % 3];
            let consumer = ((random >> 33) % 12_000).to_string();
            let subject = Subject { resource: "r", consumer: &consumer, ..Subject::default() };
            let op = match (random >> 20) % 16 {
                0 => Op::Refund,
                1 => Op::Reset,
                2 => Op::Force,
                _ => Op::Charge,
            };
            let _ = decide_one(&store, &Decision::new(strategy, subject, op, &[1 + (random >> 50) % 3]));
            clock.set(Micros(clock.now().0 + 1_000));
            if step % 20_000 == 19_999 {
                let mut held = [0; 3];
                for shard in &store.0.shards {
                    let table = shard.lock();
                    for (owner, heap) in table.keys() {
                        held[usize::from(owner) - 1] += KEY_BYTES + heap;
                    }
                }
                let counted = [1, 2, 3].map(|owner| store.0.budget.owners().held(owner));
                assert_eq!(counted, held, "after {step}");
                assert!(held.iter().all(|&held| held > 0));
            }
        }
        assert!(store.stats().evictions > 0);
        // Debts take long.
        clock.set(Micros(clock.now().0 + 10_000 * minute.0));
        store.sweep();
        assert_eq!([1, 2, 3].map(|owner| store.0.budget.owners().held(owner)), [0; 3]);
    }
}
