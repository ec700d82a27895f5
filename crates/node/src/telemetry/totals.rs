//! One worker's totals: calls and cost by strategy, resource pattern and outcome.
//!
//! A row belongs to a strategy and a pattern. It is computed if the strategy is the pattern's own, and found in a
//! small hash table if the caller named another one, so the number of rows is bounded by [`TotalsLayout`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_core::strategy::{Resolved, Rules};

use super::costs::{self, CostLayout};
use super::denials::DenialLayout;
use super::names::{CountedPattern, CounterNames};
use super::outcome::CountedOutcome;
use super::strategy_latency::MAX_TIMED;

/// Most patterns with a row of their own; the rest use the table.
const MAX_OWN: usize = 4096;

/// Size of the table, for strategies named on another pattern. A power of two.
const PAIRS: usize = 1024;

/// Slots probed before a pair is counted under [`CountedPattern::Other`].
const TRIES: usize = 8;

/// Index of the row that counts a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TotalsRow(u32);

/// Layout of the rows of one configuration; the same for all workers.
#[derive(Debug)]
pub(super) struct TotalsLayout {
    pub(super) strategies: Vec<u32>,
    patterns: Vec<u32>,
    /// The strategy of each pattern with a row of its own.
    own: Vec<u32>,
    /// Number of strategies, from the first, whose times are counted; none for inline limits.
    pub(super) timed: usize,
    pub(super) leases: Vec<usize>,
    /// The names of each live strategy and its shadow.
    pub(super) shadows: Vec<[String; 2]>,
    pub(super) denials: DenialLayout,
    pub(super) costs: CostLayout,
}

/// One worker's counts.
#[derive(Debug)]
pub(super) struct Totals {
    layout: Arc<TotalsLayout>,
    rows: Box<[TotalsCounts]>,
    /// Keys of the table: strategy and pattern, each plus one; 0 if free.
    pairs: Box<[AtomicU64]>,
}

/// Counts of one row. Aligned to cache lines: it is written at every decision.
#[derive(Debug, Default)]
#[repr(align(64))]
struct TotalsCounts {
    calls: [AtomicU64; CountedOutcome::ALL.len()],
    cost: [AtomicU64; CountedOutcome::ALL.len()],
}

/// Counts of one row under one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedTotal {
    /// The number of the strategy's name.
    pub strategy: u32,
    /// The pattern.
    pub pattern: CountedPattern,
    /// The outcome.
    pub outcome: CountedOutcome,
    /// Number of decisions.
    pub calls: u64,
    /// Sum of the decisions' costs.
    pub cost: u64,
}

impl TotalsRow {
    /// The row before any was resolved.
    pub const FIRST: Self = Self(0);
}

impl TotalsLayout {
    /// The layout of a configuration, whose names get their numbers from `names`.
    pub(super) fn new(rules: &Rules, names: &mut CounterNames) -> Self {
        let strategies: Vec<Arc<str>> = rules.counted_names().map(Into::into).collect();
        let size = rules.resources().iter().map(|(pattern, _)| pattern.place() + 1).max().unwrap_or(0);
        let mut patterns: Vec<Arc<str>> = vec!["".into(); size];
        let mut own = vec![u32::MAX; size.min(MAX_OWN)];
        for (pattern, resource) in rules.resources().iter() {
            if let Some(name) = patterns.get_mut(pattern.place()) {
                *name = pattern.to_string().into();
            }
            if let Some(strategy) = own.get_mut(pattern.place()) {
                *strategy = number(resource.strategy);
            }
        }
        let with_leases = rules.strategies().iter().enumerate().filter(|(_, it)| it.permits().is_some());
        let strategies = names.strategies.configure(&strategies);
        names.units = costs::units_of(rules);
        Self {
            denials: DenialLayout::new(rules, &strategies),
            costs: CostLayout::new(rules),
            strategies,
            patterns: names.patterns.configure(&patterns),
            own,
            timed: rules.strategies().len().min(MAX_TIMED),
            leases: with_leases.map(|(index, _)| index).collect(),
            shadows: rules.shadow_names().map(|names| names.map(str::to_owned)).collect(),
        }
    }

    fn strategy(&self, index: u32) -> u32 {
        self.strategies.get(index as usize).copied().unwrap_or(u32::MAX)
    }

    /// A row's pattern, by the number of its name.
    fn pattern(&self, pattern: CountedPattern) -> CountedPattern {
        match pattern {
            CountedPattern::At(place) => {
                CountedPattern::At(self.patterns.get(place as usize).copied().unwrap_or(u32::MAX))
            }
            other => other,
        }
    }

    /// Number of rows before the table: one per strategy without a pattern, one per strategy for other patterns, and
    /// one per pattern under its own strategy.
    fn fixed(&self) -> usize {
        2 * self.strategies.len() + self.own.len()
    }
}

impl Totals {
    pub(super) fn new(layout: Arc<TotalsLayout>) -> Self {
        let rows = (0..layout.fixed() + PAIRS).map(|_| TotalsCounts::default()).collect();
        let pairs = (0..PAIRS).map(|_| AtomicU64::default()).collect();
        Self { layout, rows, pairs }
    }

    #[inline]
    pub(super) fn row(&self, resolved: &Resolved<'_>) -> TotalsRow {
        let strategy = number(resolved.index);
        let Some(pattern) = resolved.pattern else { return TotalsRow(strategy) };
        let place = pattern.place();
        if self.layout.own.get(place) == Some(&strategy) {
            return TotalsRow(number(2 * self.layout.strategies.len() + place));
        }
        self.row_of_pair(strategy, number(place))
    }

    #[cold]
    fn row_of_pair(&self, strategy: u32, place: u32) -> TotalsRow {
        let pair = (u64::from(strategy) + 1) << 32 | (u64::from(place) + 1);
        // Fibonacci hashing: the upper bits of the product are spread best.
        let first = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        for slot in (first..first + TRIES).map(|slot| slot % PAIRS) {
            let taken = self.pairs[slot].compare_exchange(0, pair, Relaxed, Relaxed);
            if taken.unwrap_or_else(|known| known) == pair || taken.is_ok() {
                return TotalsRow(number(self.layout.fixed() + slot));
            }
        }
        TotalsRow(number(self.layout.strategies.len()) + strategy)
    }

    #[inline]
    pub(super) fn count(&self, row: TotalsRow, outcome: CountedOutcome, calls: u64, cost: u64) {
        if let Some(counts) = self.rows.get(row.0 as usize) {
            counts.calls[outcome as usize].fetch_add(calls, Relaxed);
            counts.cost[outcome as usize].fetch_add(cost, Relaxed);
        }
    }

    pub(super) fn layout(&self) -> &Arc<TotalsLayout> {
        &self.layout
    }

    pub(super) fn index_of(&self, row: TotalsRow) -> Option<usize> {
        self.key_of(row.0 as usize).map(|(strategy, _)| strategy as usize)
    }

    pub(super) fn strategy_of(&self, row: TotalsRow) -> Option<u32> {
        self.key_of(row.0 as usize).map(|(strategy, _)| self.layout.strategy(strategy))
    }

    /// The numbers of the names of a row's strategy and pattern.
    pub(super) fn place_of(&self, row: TotalsRow) -> Option<(u32, CountedPattern)> {
        let (strategy, pattern) = self.key_of(row.0 as usize)?;
        Some((self.layout.strategy(strategy), self.layout.pattern(pattern)))
    }

    /// Strategy and pattern of a row; `None` if the slot is free.
    fn key_of(&self, row: usize) -> Option<(u32, CountedPattern)> {
        let strategies = self.layout.strategies.len();
        if row < strategies {
            return Some((number(row), CountedPattern::Unmatched));
        }
        if row < 2 * strategies {
            return Some((number(row - strategies), CountedPattern::Other));
        }
        let place = row - 2 * strategies;
        if let Some(strategy) = self.layout.own.get(place) {
            return Some((*strategy, CountedPattern::At(number(place))));
        }
        let pair = self.pairs.get(row - self.layout.fixed())?.load(Relaxed);
        let (strategy, place) = ((pair >> 32) as u32, pair as u32);
        (pair != 0).then(|| (strategy.saturating_sub(1), CountedPattern::At(place.saturating_sub(1))))
    }

    pub(super) fn each(&self, mut each: impl FnMut(CountedTotal)) {
        for (row, counts) in self.rows.iter().enumerate() {
            let Some((strategy, pattern)) = self.key_of(row) else { continue };
            let (strategy, pattern) = (self.layout.strategy(strategy), self.layout.pattern(pattern));
            for outcome in CountedOutcome::ALL {
                let calls = counts.calls[outcome as usize].load(Relaxed);
                if calls > 0 {
                    let cost = counts.cost[outcome as usize].load(Relaxed);
                    each(CountedTotal { strategy, pattern, outcome, calls, cost });
                }
            }
        }
    }
}

/// Saturates; real places are far fewer.
#[inline]
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::algorithm::{Algorithm, Rate};
    use weir_core::strategy::{FailurePolicy, Limit, Resource, Resources, Scope, Strategy};
    use weir_units::Micros;

    fn rules(strategies: usize, patterns: &[(&str, usize)]) -> Rules {
        let strategy = |index: usize| {
            let rate = Rate { count: 1, period: Micros::from_secs(1) };
            let algorithm = Algorithm::bucket(1, rate).unwrap();
            let limits = vec![Limit { name: "l".into(), scope: Scope::default(), algorithm }];
            Strategy::new(&format!("s{index}"), limits, true, FailurePolicy::Error).unwrap()
        };
        let resources = patterns
            .iter()
            .map(|&(pattern, strategy)| (pattern.to_owned(), Resource { strategy, group: None }));
        Rules::new((0..strategies).map(strategy).collect(), Resources::new(resources))
    }

    fn counted(totals: &Totals) -> Vec<(u32, CountedPattern, u64, u64)> {
        let mut all = Vec::new();
        totals.each(|one| all.push((one.strategy, one.pattern, one.calls, one.cost)));
        all.sort_unstable();
        all
    }

    #[test]
    fn each_pair_of_a_strategy_and_a_pattern_has_a_row() {
        let rules = rules(3, &[("a/*", 0), ("b", 2), ("a/b/*", 1)]);
        let totals = Totals::new(Arc::new(TotalsLayout::new(&rules, &mut CounterNames::default())));
        let asked =
            [("a/x", ""), ("a/b/c", ""), ("b", ""), ("b", "s0"), ("b", "s1"), ("none", "s1"), ("b", "s0")];
        for (resource, strategy) in asked {
            let row = totals.row(&rules.resolve(resource, strategy).unwrap());
            totals.count(row, CountedOutcome::Allowed, 1, 10);
        }
        let at = CountedPattern::At;
        let expected = [
            (0, at(0), 1, 10),
            (0, at(1), 2, 20),
            (1, CountedPattern::Unmatched, 1, 10),
            (1, at(1), 1, 10),
            (1, at(2), 1, 10),
            (2, at(1), 1, 10),
        ];
        assert_eq!(counted(&totals), expected);
    }

    #[test]
    fn more_pairs_than_fit_are_counted_together_and_none_is_lost() {
        let names: Vec<String> = (0..2_000).map(|index| format!("r{index}")).collect();
        let patterns: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 0)).collect();
        let rules = rules(2, &patterns);
        let totals = Totals::new(Arc::new(TotalsLayout::new(&rules, &mut CounterNames::default())));
        for name in &names {
            totals.count(totals.row(&rules.resolve(name, "s1").unwrap()), CountedOutcome::Denied, 1, 3);
        }
        let all = counted(&totals);
        let other: Vec<_> = all.iter().filter(|one| one.1 == CountedPattern::Other).collect();
        assert_eq!(other.len(), 1);
        assert!(other[0].2 >= 2_000 - PAIRS as u64, "{other:?}");
        assert_eq!(all.iter().map(|one| one.2).sum::<u64>(), 2_000);
        assert_eq!(all.iter().map(|one| one.3).sum::<u64>(), 6_000);
    }
}
