//! Batched decisions: each for itself and in order, after a prefetch for all of them.
//!
//! If a store exceeds the processor's caches, a single decision waits twice for memory: for its key in the index,
//! then for its state. In a batch the index entries are read first and the states next, so the processor overlaps the
//! waits.

use std::hint::black_box;

use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::place::StatePlace;
use super::table::ShardTable;
use super::{SHARDS, SharedMemory, WallReading};
use crate::{Answers, Decision, TOGETHER};

// A set of shards is a bit mask.
const _: () = assert!(SHARDS <= u128::BITS as usize && TOGETHER <= u8::MAX as usize);

/// The locked shards, and the shard of each decision.
struct Locked<'a> {
    tables: SmallVec<[(usize, MutexGuard<'a, ShardTable>); TOGETHER]>,
    /// For each decision the index of its shard in `tables`.
    of: [u8; TOGETHER],
    /// Number of decisions whose shard is locked.
    decisions: usize,
}

impl SharedMemory {
    /// Decides simple decisions, each for itself and in order.
    pub(super) fn decide_together(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        if let [only] = decisions {
            return self.decide_only(only, answers);
        }
        for decisions in decisions.chunks(TOGETHER) {
            let mut places: [StatePlace; TOGETHER] = Default::default();
            self.locate(|locator| {
                for (decision, place) in decisions.iter().zip(&mut places) {
                    locator.locate(decision, place);
                }
            });
            let mut stamp = self.time.stamp();
            let (mut decisions, mut places) = (decisions, &places[..decisions.len()]);
            while !decisions.is_empty() {
                let made = self.decide_some(decisions, places, &mut stamp, answers);
                (decisions, places) = (&decisions[made..], &places[made..]);
            }
        }
    }

    /// Decides one that came alone, without a list of shards.
    fn decide_only(&self, decision: &Decision<'_>, answers: &mut Answers) {
        let place = self.locate_one(decision);
        let mut stamp = self.time.stamp();
        let mut table = self.shards[place.shard].lock();
        self.date(&mut table, &mut stamp);
        let rules = (&**decision.strategy, decision.strategy.algorithms());
        let cost = decision.costs.first().copied().unwrap_or_default();
        if let Err(why) = self.decide_at(&place, table, rules, (decision.op, cost, stamp), answers) {
            answers.fail(1, &self.budget.refuse(why));
        }
    }

    /// Decides the first ones, up to one whose shard is locked by another thread, but at least one. Returns their
    /// number.
    fn decide_some(
        &self,
        decisions: &[Decision<'_>],
        places: &[StatePlace],
        stamp: &mut WallReading,
        answers: &mut Answers,
    ) -> usize {
        let mut locked = self.lock(places);
        while let Some(index) = locked.tables.iter().position(|(_, table)| table.ahead() != stamp.ahead) {
            // Earlier ones are checked again: the clock may have stepped once more.
            self.date_anew(&mut locked.tables[index].1, stamp);
        }
        fetch(&locked, places);
        for ((decision, place), &of) in decisions.iter().zip(places).zip(&locked.of).take(locked.decisions) {
            let rules = (&**decision.strategy, decision.strategy.algorithms());
            // They are simple: each has one cost.
            let cost = decision.costs.first().copied().unwrap_or_default();
            let asked = (decision.op, cost, *stamp);
            let table = &mut *locked.tables[usize::from(of)].1;
            if let Err(why) = self.decide_at(place, table, rules, asked, answers) {
                answers.fail(1, &self.budget.refuse(why));
            }
        }
        locked.decisions
    }

    /// Locks shards in the order of the decisions. It blocks on the first lock only: a thread that holds one lock and
    /// waits for another could deadlock.
    fn lock(&self, places: &[StatePlace]) -> Locked<'_> {
        let mut locked = Locked { tables: SmallVec::new(), of: [0; TOGETHER], decisions: 0 };
        let mut seen = 0_u128;
        for (of, &StatePlace { shard, .. }) in locked.of.iter_mut().zip(places) {
            let mut index = locked.tables.len();
            if seen & 1 << shard != 0 {
                index = locked.tables.iter().position(|(known, _)| *known == shard).unwrap_or_default();
            } else {
                let shard_lock = &self.shards[shard];
                let free = if seen == 0 { Some(shard_lock.lock()) } else { shard_lock.lock_if_free() };
                let Some(table) = free else { break };
                seen |= 1 << shard;
                locked.tables.push((shard, table));
            }
            // There are no more than TOGETHER.
            *of = index as u8;
            locked.decisions += 1;
        }
        locked
    }
}

/// Prefetches the cache lines. The values read are not used: one decision may drop a state that was read here for
/// another.
fn fetch(locked: &Locked<'_>, places: &[StatePlace]) {
    if locked.decisions < 2 {
        return;
    }
    let of_each = places.iter().zip(&locked.of).take(locked.decisions);
    let mut read = 0_u32;
    for (place, &of) in of_each.clone() {
        let table = &locked.tables[usize::from(of)].1;
        for &digest in &place.digests {
            read ^= table.touch_index(digest);
        }
    }
    black_box(read);
    let mut slots = SmallVec::<[_; TOGETHER]>::new();
    for (place, &of) in of_each {
        let table = &locked.tables[usize::from(of)].1;
        slots.extend(place.digests.iter().map(|&digest| (table, table.guess(digest))));
    }
    let touched = slots.iter().filter_map(|(table, slot)| Some(table.touch((*slot)?)));
    black_box(touched.fold(0, u64::wrapping_add));
}
