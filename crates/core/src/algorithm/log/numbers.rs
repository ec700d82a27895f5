//! A log as whole numbers: base, number of entries, entries, held starts.

use super::held::HeldStart;
use super::{LogEntry, MAX_ENTRIES, MODULUS, State, total_between};
use weir_units::{CEILING, LATEST};

impl State {
    pub(in crate::algorithm) fn numbers(&self, first: u64) -> Vec<u64> {
        let mut numbers = vec![first, self.base, self.entries.len() as u64];
        numbers.extend(self.entries.iter().flat_map(|entry| [entry.at, entry.total]));
        numbers.extend(self.held().iter().flat_map(|held| [held.start, held.cost, held.number]));
        numbers
    }

    pub(in crate::algorithm) fn of_numbers(numbers: &[u64]) -> Option<Self> {
        let (&[base, count], rest) = numbers.split_first_chunk()?;
        let count = usize::try_from(count).ok().filter(|count| *count as u64 <= MAX_ENTRIES)?;
        let (entries, rest) = rest.split_at_checked(2 * count)?;
        let (entries, _) = entries.as_chunks();
        let (held, []) = rest.as_chunks() else { return None };
        let state = Self {
            base,
            entries: entries.iter().map(|&[at, total]| LogEntry { at, total }).collect(),
            held: None,
        };
        let held: Vec<HeldStart> =
            held.iter().map(|&[start, cost, number]| HeldStart { start, cost, number }).collect();
        (state.is_exact() && are_exact(&held))
            .then(|| Self { held: (!held.is_empty()).then(|| Box::new(held.into())), ..state })
    }

    /// True if the entries are in order and count for no more than a log may hold.
    fn is_exact(&self) -> bool {
        let mut before = self.base;
        let costs = self.entries.iter().map(|entry| {
            let cost = total_between(before, entry.total);
            before = entry.total;
            cost
        });
        self.base < MODULUS
            && self.entries.iter().all(|entry| entry.total < MODULUS && entry.at <= LATEST.0)
            && self.entries.iter().is_sorted_by(|earlier, later| earlier.at < later.at)
            && costs.sum::<u64>() < MODULUS
    }
}

/// True if held starts are in order and none can be counted inexactly.
fn are_exact(held: &[HeldStart]) -> bool {
    let mut costs = held.iter().map(|held| held.cost);
    held.len() as u64 <= MAX_ENTRIES
        && held.is_sorted_by_key(|held| held.start)
        && held.iter().all(|held| held.start <= LATEST.0 && held.number < CEILING << 1)
        && costs.try_fold(0, |all: u64, cost| all.checked_add(cost)).is_some_and(|all| all <= CEILING)
}
