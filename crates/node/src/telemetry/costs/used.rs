//! Units that were used, by strategy, resource pattern and name of the cost: for the history of usage.

use std::collections::{BTreeMap, HashMap};

use crate::telemetry::names::{CountedPattern, CounterNames};

/// Pairs of a strategy and a pattern with counts of their own. Further ones are counted as other patterns of their strategy.
const MAX_PLACES: usize = 5_000;

/// Names of one pair. A strategy has eight, and others after a reload; further ones are [`OTHER`].
const MAX_NAMES: usize = 64;

/// The name of further costs.
const OTHER: &str = "other";

/// Strategy, pattern and name of a sum of units.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountedCost {
    /// The number of the strategy's name.
    pub strategy: u32,
    /// The pattern.
    pub pattern: CountedPattern,
    /// The name of the cost.
    pub name: Box<str>,
}

/// One worker's units.
#[derive(Debug, Default)]
pub(super) struct UsedCosts(HashMap<(u32, CountedPattern), BTreeMap<Box<str>, u64>>);

impl UsedCosts {
    pub(super) fn add(&mut self, place: Option<(u32, CountedPattern)>, name: &str, units: u64) {
        let Some((strategy, pattern)) = place.filter(|_| units > 0) else { return };
        let is_full = self.0.len() >= MAX_PLACES && !self.0.contains_key(&(strategy, pattern));
        let pattern = if is_full { CountedPattern::Other } else { pattern };
        let names = self.0.entry((strategy, pattern)).or_default();
        if let Some(sum) = names.get_mut(name) {
            *sum = sum.wrapping_add(units);
            return;
        }
        let name = if names.len() < MAX_NAMES { name } else { OTHER };
        let sum = names.entry(name.into()).or_default();
        *sum = sum.wrapping_add(units);
    }

    /// Drops the units of names that are not shown any more.
    pub(super) fn retain(&mut self, names: &CounterNames) {
        self.0.retain(|(strategy, pattern), _| names.show(*strategy, *pattern));
    }

    pub(super) fn add_to(&self, sums: &mut BTreeMap<CountedCost, u64>) {
        for (&(strategy, pattern), names) in &self.0 {
            for (name, units) in names {
                let cost = CountedCost { strategy, pattern, name: name.clone() };
                let sum = sums.entry(cost).or_default();
                *sum = sum.wrapping_add(*units);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted_together_and_no_unit_is_lost() {
        let mut used = UsedCosts::default();
        for place in 0..2 * MAX_PLACES {
            used.add(Some((7, CountedPattern::At(place as u32))), "output", 3);
        }
        for name in 0..2 * MAX_NAMES {
            used.add(Some((7, CountedPattern::At(0))), &format!("n{name}"), 1);
        }
        used.add(None, "output", 5);
        used.add(Some((8, CountedPattern::Unmatched)), "output", 0);
        let mut sums = BTreeMap::new();
        used.add_to(&mut sums);
        let of = |wanted: &str| {
            sums.iter().filter(|(cost, _)| &*cost.name == wanted).map(|(_, sum)| sum).sum::<u64>()
        };
        assert_eq!(of("output"), 6 * MAX_PLACES as u64);
        assert_eq!(sums.values().sum::<u64>(), of("output") + 2 * MAX_NAMES as u64);
        let other = CountedCost { strategy: 7, pattern: CountedPattern::Other, name: "output".into() };
        assert_eq!(sums[&other], 3 * MAX_PLACES as u64);
        assert!(sums.len() <= MAX_PLACES + 1 + MAX_NAMES + 1);
        assert!(of(OTHER) > 0);
    }
}
