//! States, parts and records of the pure driver, in maps.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use weir_core::algorithm::budget::{BudgetCells, CallRecord, HeldParts, HoldRecord};
use weir_core::algorithm::{Cells, Kept, State};

use super::table::{BudgetStep, BudgetTable};

/// The bound of how far ahead of the clock a time counts.
pub const MOST_AHEAD: u64 = 7_200_000_000;

/// Everything that is stored.
#[derive(Default, Clone)]
pub struct World {
    states: HashMap<String, State>,
    parts: HashMap<String, HeldParts>,
    holds: HashMap<String, HoldRecord>,
    calls: HashMap<String, CallRecord>,
    marks: u64,
}

/// The cells that one step may use.
pub struct StepCells<'w> {
    world: &'w mut World,
    keys: Vec<String>,
    id: String,
}

impl World {
    /// The cells of a step.
    pub fn cells(&mut self, table: &BudgetTable, step: &BudgetStep) -> StepCells<'_> {
        let value = |field: &String| match &**field {
            "consumer" => step.consumer.clone(),
            other => step.attributes[other].clone(),
        };
        let values = |per: &[String]| per.iter().map(value).collect::<Vec<_>>().join("|");
        let keys = table.names.iter().zip(&table.per).map(|(name, per)| format!("{name}:{}", values(per)));
        let is_shared = |field: &&String| table.per.iter().all(|per| per.contains(*field));
        let tag: Vec<String> = table.per[0].iter().filter(is_shared).map(value).collect();
        let id = format!("{}:{}:{}", tag.join("|"), step.consumer, step.id);
        self.cells_of(keys.collect(), id)
    }

    /// Cells of these keys of limits, and this key of records.
    pub fn cells_of(&mut self, keys: Vec<String>, id: String) -> StepCells<'_> {
        StepCells { world: self, keys, id }
    }
}

impl World {
    /// The units that each of the keys holds at `now`, and those of its open parts by the records of all ids. A string or a record
    /// that is too far ahead of the clock does not count.
    pub fn held_and_open(&self, keys: &[String], now: u64) -> Vec<(u64, u64)> {
        let known = |key: &String| self.parts.get(key).filter(|parts| parts.seen <= now + MOST_AHEAD);
        let at = keys.iter().filter_map(known).map(|parts| parts.seen).max().unwrap_or(0).max(now);
        let is_open = |record: &&HoldRecord| {
            record.settlement.is_none() && at < record.end && record.end - at <= MOST_AHEAD
        };
        let one = |key: &String| {
            let Some(parts) = known(key) else { return (0, 0) };
            let held = parts.ends.iter().filter(|(end, _)| *end > at).map(|(_, units)| units).sum();
            let entries = self.holds.values().filter(is_open).flat_map(|record| &record.entries);
            let own = entries
                .filter(|entry| (entry.key, entry.mark) == (digest(key), parts.mark) && entry.end > at);
            (held, own.map(|entry| entry.open).sum())
        };
        keys.iter().map(one).collect()
    }

    /// Returns how far the latest time that these keys have seen is ahead of `now`. `None` where one is so far ahead
    /// that it does not count now, but may later.
    pub fn ahead(&self, keys: &[String], now: u64) -> Option<u64> {
        let seen =
            keys.iter().filter_map(|key| self.parts.get(key)).map(|parts| parts.seen.saturating_sub(now));
        Some(seen.max().unwrap_or(0)).filter(|ahead| *ahead <= MOST_AHEAD)
    }

    /// Returns the end of the hold with this id.
    pub fn end_of(&self, id: &str) -> Option<u64> {
        self.holds.get(id).map(|record| record.end)
    }
}

fn digest(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() >> 12
}

impl StepCells<'_> {
    /// The same for debits, whose ids are apart.
    pub fn of_debits(self) -> Self {
        Self { id: format!("debit {}", self.id), ..self }
    }
}

impl Cells for StepCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.world.states.get(&self.keys[index])
    }

    fn phase(&self, index: usize) -> u64 {
        weir_core::key::phase(self.keys[index].as_bytes())
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        let mut state = self.world.states.remove(&self.keys[index]);
        change(&mut state);
        if let Some(state) = state {
            self.world.states.insert(self.keys[index].clone(), state);
        }
    }
}

impl BudgetCells for StepCells<'_> {
    fn parts(&self, index: usize) -> Option<&HeldParts> {
        self.world.parts.get(&self.keys[index])
    }

    fn put_parts(&mut self, index: usize, parts: HeldParts) {
        if parts.ends.is_empty() {
            self.world.parts.remove(&self.keys[index]);
        } else {
            self.world.parts.insert(self.keys[index].clone(), parts);
        }
    }

    fn key(&self, index: usize) -> u64 {
        digest(&self.keys[index])
    }

    fn mark(&mut self) -> u64 {
        self.world.marks += 1;
        self.world.marks
    }

    fn hold(&self) -> Option<&HoldRecord> {
        self.world.holds.get(&self.id)
    }

    fn put_hold(&mut self, record: HoldRecord) -> Result<(), Infallible> {
        self.world.holds.insert(self.id.clone(), record);
        Ok(())
    }

    fn call(&self) -> Option<&CallRecord> {
        self.world.calls.get(&self.id)
    }

    fn put_call(&mut self, record: CallRecord) -> Result<(), Infallible> {
        self.world.calls.insert(self.id.clone(), record);
        Ok(())
    }
}
