//! Names of counters, each with a number that lasts for the life of the process.
//!
//! A reload renumbers the places of the configuration, but not these numbers: what remains keeps counting.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Removed names whose counters are still shown. The oldest are dropped.
const MAX_REMOVED: usize = 1_000;

/// Pattern of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CountedPattern {
    /// No pattern matches the resource; the caller named the strategy.
    Unmatched,
    /// Shared by pairs that found no slot in the table.
    Other,
    /// The pattern with this number.
    At(u32),
}

#[derive(Debug, Clone, Default)]
pub(super) struct NumberedNames {
    numbers: HashMap<Arc<str>, u32>,
    names: BTreeMap<u32, Arc<str>>,
    next: u32,
    /// Numbers of names that are not configured any more, the longest removed first.
    removed: VecDeque<u32>,
}

/// The names of all counters that are shown.
#[derive(Debug, Clone, Default)]
pub struct CounterNames {
    pub(super) strategies: NumberedNames,
    pub(super) patterns: NumberedNames,
    /// The costs by name that limits of configured strategies take.
    pub(super) units: CostUnits,
}

/// The limits with costs by name, by the names of their strategies.
pub(super) type CostUnits = BTreeMap<Box<str>, Vec<LimitUnit>>;

/// The cost that a limit takes.
#[derive(Debug, Clone)]
pub struct LimitUnit {
    /// The limit.
    pub limit: Box<str>,
    /// The name of the cost.
    pub cost: Box<str>,
    /// The unit; empty if it has none.
    pub unit: Arc<str>,
}

impl NumberedNames {
    /// Sets the configured names, and returns their numbers in order. A known name keeps its number.
    pub(super) fn configure(&mut self, configured: &[Arc<str>]) -> Vec<u32> {
        let numbers: Vec<u32> = configured.iter().map(|name| self.number_of(name)).collect();
        let mut present = numbers.clone();
        present.sort_unstable();
        let is_present = |number: &u32| present.binary_search(number).is_ok();
        self.removed.retain(|number| !is_present(number));
        let known: std::collections::HashSet<u32> = self.removed.iter().copied().collect();
        let newly = self.names.keys().filter(|&number| !is_present(number) && !known.contains(number));
        self.removed.extend(newly.copied().collect::<Vec<_>>());
        while self.removed.len() > MAX_REMOVED {
            let Some(name) = self.removed.pop_front().and_then(|number| self.names.remove(&number)) else {
                continue;
            };
            self.numbers.remove(&name);
        }
        numbers
    }

    fn number_of(&mut self, name: &Arc<str>) -> u32 {
        let next = self.next;
        let number = *self.numbers.entry(Arc::clone(name)).or_insert(next);
        if number == next {
            self.next = self.next.wrapping_add(1);
            self.names.insert(number, Arc::clone(name));
        }
        number
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }

    /// The name of a number; `None` once it is dropped.
    pub(super) fn get(&self, number: u32) -> Option<&Arc<str>> {
        self.names.get(&number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<str>)> {
        self.names.iter().map(|(number, name)| (*number, name))
    }
}

impl CounterNames {
    /// Creates names with their places as numbers.
    pub fn new(strategies: &[Arc<str>], patterns: &[Arc<str>]) -> Self {
        let mut names = Self::default();
        names.strategies.configure(strategies);
        names.patterns.configure(patterns);
        names
    }

    /// The unit of a cost, of the first of its limits that has one; `None` if the configuration gives it none.
    pub fn unit(&self, strategy: &str, cost: &str) -> Option<&Arc<str>> {
        let mut limits = self.units.get(strategy)?.iter().filter(|limit| *limit.cost == *cost);
        limits.find(|limit| !limit.unit.is_empty()).map(|limit| &limit.unit)
    }

    /// The limits with costs by name, with their strategies.
    pub fn limits_with_costs(&self) -> impl Iterator<Item = (&str, &LimitUnit)> {
        self.units.iter().flat_map(|(strategy, limits)| limits.iter().map(|limit| (&**strategy, limit)))
    }

    /// The name of a strategy's number.
    pub fn strategy(&self, number: u32) -> Option<&Arc<str>> {
        self.strategies.get(number)
    }

    /// The name of a resource pattern's number.
    pub fn pattern(&self, number: u32) -> Option<&Arc<str>> {
        self.patterns.get(number)
    }

    /// True while counts of this strategy and pattern are shown.
    pub(super) fn show(&self, strategy: u32, pattern: CountedPattern) -> bool {
        let has_pattern = match pattern {
            CountedPattern::At(pattern) => self.pattern(pattern).is_some(),
            CountedPattern::Other | CountedPattern::Unmatched => true,
        };
        has_pattern && self.strategy(strategy).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(from: u32, to: u32) -> Vec<Arc<str>> {
        (from..to).map(|index| format!("n{index}").into()).collect()
    }

    #[test]
    fn a_name_keeps_its_number_while_it_is_shown() {
        let mut numbered = NumberedNames::default();
        assert_eq!(numbered.configure(&names(0, 3)), [0, 1, 2]);
        assert_eq!(numbered.configure(&names(1, 4)), [1, 2, 3]);
        assert_eq!(&**numbered.get(0).unwrap(), "n0", "a removed name is still shown");
        assert_eq!(numbered.configure(&names(0, 1)), [0], "a name that comes back has its number");
        assert_eq!(numbered.iter().count(), 4);
    }

    #[test]
    fn at_most_a_thousand_removed_names_are_shown() {
        let mut numbered = NumberedNames::default();
        for round in 0..30 {
            numbered.configure(&names(100 * round, 100 * (round + 1)));
        }
        assert_eq!(numbered.iter().count(), 1_100);
        assert!(numbered.get(1_899).is_none() && numbered.get(1_900).is_some());
        assert_eq!(numbered.configure(&names(0, 1)), [3_000], "a dropped name is a new one");
    }
}
