//! The hot key of a shard: its state lies in the cache line of the shard's lock.
//!
//! Two workers that use one key pass the lock and the state to each other, and each cache line takes half a decision
//! to transfer. In one line, there is one transfer instead of two.
//!
//! `cargo bench --bench memory -- two_workers_one_key` with and without it, in a quiet hour, for 100,000 decisions: two
//! workers 26.6 ms against 29.1, four at a time 14.4 against 16.2, one worker 15.8 against 16.7. Sixteen at a time on
//! one key, which few callers send, take 14.7 ms against 11.4.

use weir_core::algorithm::State;

use super::index::{SLOT_BITS, Slot, slot_of};

/// Consecutive decisions on one key after which it is hot. Many, so that two keys that alternate are not moved to and
/// fro.
const RUN: u8 = 16;

const NO_SLOT: Slot = Slot::MAX;

/// A shard's hot key, if it has one, and the search for the next one.
pub(super) struct Hot {
    digest: [u64; 2],
    state: Option<State>,
    slot: Slot,
    run: Run,
}

/// The last slot used, other than the hot one; in the upper byte, how often in a row.
#[derive(Clone, Copy, Default)]
struct Run(u32);

impl Default for Hot {
    fn default() -> Self {
        Self { digest: [0; 2], state: None, slot: NO_SLOT, run: Run::default() }
    }
}

impl Hot {
    /// The slot of this key, if it is the hot one.
    #[inline]
    pub(super) fn find(&self, digest: [u64; 2]) -> Option<Slot> {
        (self.digest == digest && self.slot != NO_SLOT).then_some(self.slot)
    }

    #[inline]
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.slot == slot
    }

    pub(super) fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    pub(super) fn state_mut(&mut self) -> &mut Option<State> {
        &mut self.state
    }

    /// Counts a decision on this slot. Returns true if it becomes the hot one now.
    #[inline]
    pub(super) fn asked(&mut self, slot: Slot) -> bool {
        self.run = if self.has(slot) { Run::default() } else { self.run.next(slot) };
        self.run.length() >= RUN
    }

    /// Moves the state of another slot here; the previous state returns to its cell.
    pub(super) fn take(
        &mut self,
        slot: Slot,
        digest: [u64; 2],
        state: Option<State>,
    ) -> Option<(Slot, State)> {
        let new = Self { digest, state, slot, run: Run::default() };
        let Self { state, slot, .. } = std::mem::replace(self, new);
        state.map(|state| (slot, state))
    }

    /// Clears it if the key of this slot was removed.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.has(slot) {
            *self = Self::default();
        }
    }
}

impl Run {
    fn next(self, slot: Slot) -> Self {
        let length = if slot_of(self.0) == slot { self.length().saturating_add(1) } else { 1 };
        Self(u32::from(length) << SLOT_BITS | slot)
    }

    fn length(self) -> u8 {
        (self.0 >> SLOT_BITS) as u8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use parking_lot::Mutex;

    use super::*;
    use crate::memory::Shard;
    use crate::memory::budget::Budget;
    use crate::memory::table::{Claim, ShardTable};
    use weir_config::MemoryConfig;
    use weir_units::Micros;

    const KEYS: u128 = 5;

    /// Keys come, are asked for in runs, change, expiry and go, and a table with a hot key says of each of them
    /// what a map says.
    #[test]
    fn a_table_with_a_hot_key_agrees_with_a_map() {
        let budget = Budget::new(&MemoryConfig { budget: 1 << 20, ..MemoryConfig::default() });
        let (mut table, mut map) = (ShardTable::new(&budget), HashMap::new());
        let mut random = 1_u64;
        for step in 0..200_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = u128::from(random >> 40) % KEYS;
            match (random >> 33) % 64 {
                0 => remove(&mut table, &mut map, &budget, key),
                1 => {
                    // All that expiry by then, the hot one or not.
                    let second = step / 20_000;
                    table.sweep(1 << 10, second, &budget);
                    map.retain(|_, (_, expires)| *expires > second);
                }
                _ => {
                    for time in 0..(random >> 20) % (3 * u64::from(RUN)) {
                        ask(&mut table, &mut map, &budget, key, (step * 100 + time, 1 + (random >> 60)));
                    }
                }
            }
            for key in 0..KEYS {
                let kept = table.find(key).and_then(|slot| table.get(slot));
                assert_eq!(kept, map.get(&key).map(|(state, _)| state), "key {key} after step {step}");
            }
            assert_eq!(table.len(), map.len());
        }
    }

    type Map = HashMap<u128, (State, u64)>;

    fn ask(table: &mut ShardTable, map: &mut Map, budget: &Budget, key: u128, (until, expires): (u64, u64)) {
        let state = State::Marker { until: Micros(until) };
        match table.find(key) {
            Some(slot) => {
                table.asked(slot);
                *table.state_mut(slot) = Some(state.clone());
                table.expires(slot, expires, false);
            }
            None => {
                let claim = Claim { owner: 1, second: 0, evict: false, keep: &[] };
                assert!(table.reserve(1, claim, budget));
                table.insert(key, state.clone(), (expires, false), claim.owner, budget);
            }
        }
        map.insert(key, (state, expires));
    }

    fn remove(table: &mut ShardTable, map: &mut Map, budget: &Budget, key: u128) {
        if let Some(slot) = table.find(key) {
            table.remove(slot, budget);
        }
        map.remove(&key);
    }

    #[test]
    fn a_key_is_hot_after_a_run_and_until_another_has_one() {
        let mut hot = Hot::default();
        for time in 1..=RUN {
            assert_eq!(hot.asked(3), time == RUN, "{time}");
        }
        assert!(hot.take(3, [3, 3], None).is_none());
        assert_eq!((hot.find([3, 3]), hot.find([3, 4])), (Some(3), None));
        for _ in 0..1000 {
            assert!(!hot.asked(4) && !hot.asked(5), "asked for in turn");
        }
        for _ in 0..1000 {
            assert!(!hot.asked(3) && !hot.asked(6), "the hot one between them");
        }
        assert!((1..RUN).fold(hot.asked(6), |_, _| hot.asked(6)));
    }

    /// Before the table there is room for the lock only, and the hot state is the table's first field.
    #[test]
    fn the_hot_state_is_in_the_line_of_the_lock() {
        let shard = Shard(Mutex::new(ShardTable::new(&Budget::new(&MemoryConfig::default()))));
        let table = shard.lock();
        let before = (&raw const *table).addr() - (&raw const shard).addr();
        assert!((1..=64 - size_of::<Hot>()).contains(&before), "{before} bytes before the table");
        assert_eq!(size_of::<Shard>(), 128, "all else is in a second line");
    }
}
