//! The series of one node: a strategy, a resource pattern and an outcome each.

use std::collections::HashMap;
use std::sync::Arc;

use weir_node::telemetry::{CountedCost, CountedOutcome, CountedPattern, CountedTotal, CounterNames};

/// Series counted individually. Others are counted under [`OTHER`], by outcome.
pub(super) const MAX_SERIES: usize = 5_000;

/// Outcomes whose series under [`OTHER`] have the first numbers. Nodes exchange these numbers, so those of later
/// outcomes are assigned when they are needed.
const FIRST_OTHERS: usize = 8;

/// Strategy and pattern of the series that are not counted individually.
const OTHER: &str = "other";

/// Number of a series on its node.
pub(super) type SeriesId = u16;

/// Name of a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SeriesName {
    pub(super) strategy: Arc<str>,
    pub(super) pattern: Arc<str>,
    pub(super) outcome: Arc<str>,
    /// The name of the cost whose units are counted, in place of calls; empty for calls.
    pub(super) cost: Arc<str>,
}

/// All series of a node, with their last totals.
pub(super) struct SeriesTable {
    /// The names of new series.
    counted: Arc<CounterNames>,
    other: Arc<str>,
    known: HashMap<(u32, CountedPattern, u8), KnownSeries>,
    /// Series of costs by name.
    known_costs: HashMap<CountedCost, KnownSeries>,
    /// The number of the further costs, whose units are of any kind.
    other_costs: Option<SeriesId>,
    names: Vec<SeriesName>,
    /// Numbers of the further series of later outcomes.
    late_others: [Option<SeriesId>; CountedOutcome::ALL.len() - FIRST_OTHERS],
}

struct KnownSeries {
    id: SeriesId,
    calls: u64,
    cost: u64,
}

impl SeriesTable {
    /// A table for counters with these names.
    pub(super) fn new(counted: Arc<CounterNames>) -> Self {
        let names =
            CountedOutcome::ALL.iter().take(FIRST_OTHERS).map(|outcome| other_series(*outcome)).collect();
        let (known, known_costs) = (HashMap::new(), HashMap::new());
        let (other, late_others) = (OTHER.into(), Default::default());
        Self { counted, other, known, known_costs, other_costs: None, names, late_others }
    }

    /// Sets the names of series that are new from now on, after a reload. Counters that are gone are forgotten; their
    /// series keep their numbers.
    pub(super) fn rename(&mut self, counted: Arc<CounterNames>) {
        if !Arc::ptr_eq(&self.counted, &counted) {
            self.known.retain(|(strategy, ..), _| counted.strategy(*strategy).is_some());
            self.known_costs.retain(|cost, _| counted.strategy(cost.strategy).is_some());
            self.counted = counted;
        }
    }

    /// Counts in a series since the last call, computed from its totals so far.
    pub(super) fn since_last(&mut self, total: &CountedTotal) -> Option<(SeriesId, u64, u64)> {
        let CountedTotal { strategy, pattern, outcome, calls, cost } = *total;
        let key = (strategy, pattern, outcome as u8);
        let id = match self.known.get(&key) {
            Some(known) => known.id,
            None => self.name(strategy, pattern, outcome),
        };
        let known = self.known.entry(key).or_insert(KnownSeries { id, calls: 0, cost: 0 });
        let since = (calls.saturating_sub(known.calls), cost.wrapping_sub(known.cost));
        (known.calls, known.cost) = (calls, cost);
        // A call may be read before its cost.
        (since != (0, 0)).then_some((known.id, since.0, since.1))
    }

    /// Units of a cost by name since the last call, computed from all so far. They are entries without calls.
    pub(super) fn units_since_last(&mut self, cost: CountedCost, units: u64) -> Option<(SeriesId, u64, u64)> {
        let id = match self.known_costs.get(&cost) {
            Some(known) => known.id,
            None => self.name_cost(&cost),
        };
        let known = self.known_costs.entry(cost).or_insert(KnownSeries { id, calls: 0, cost: 0 });
        let since = units.wrapping_sub(std::mem::replace(&mut known.cost, units));
        (since != 0).then_some((id, 0, since))
    }

    /// The unit of a cost; empty if it has none.
    pub(super) fn unit(&self, strategy: &str, cost: &str) -> Arc<str> {
        self.counted.unit(strategy, cost).cloned().unwrap_or_default()
    }

    /// Number of series.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Name of the series with this number.
    pub(super) fn name_at(&self, number: usize) -> Option<&SeriesName> {
        self.names.get(number)
    }

    /// The name of a strategy.
    pub(super) fn strategy(&self, number: u32) -> Arc<str> {
        self.counted.strategy(number).cloned().unwrap_or_default()
    }

    /// The number of a new series: the first numbers are those of [`OTHER`].
    fn name(&mut self, strategy: u32, pattern: CountedPattern, outcome: CountedOutcome) -> SeriesId {
        if self.names.len() >= MAX_SERIES + FIRST_OTHERS {
            return self.other_number(outcome);
        }
        let (strategy, pattern) = (self.strategy(strategy), self.pattern(pattern));
        self.push(SeriesName { strategy, pattern, outcome: outcome.name().into(), cost: Arc::default() })
    }

    /// The number of a new series of a cost.
    fn name_cost(&mut self, cost: &CountedCost) -> SeriesId {
        let outcome: Arc<str> = CountedOutcome::Allowed.name().into();
        if self.names.len() >= MAX_SERIES + FIRST_OTHERS {
            if let Some(other) = self.other_costs {
                return other;
            }
            let other = || Arc::clone(&self.other);
            let id = self.push(SeriesName { strategy: other(), pattern: other(), outcome, cost: other() });
            self.other_costs = Some(id);
            return id;
        }
        let (strategy, pattern) = (self.strategy(cost.strategy), self.pattern(cost.pattern));
        self.push(SeriesName { strategy, pattern, outcome, cost: (*cost.name).into() })
    }

    fn push(&mut self, name: SeriesName) -> SeriesId {
        self.names.push(name);
        SeriesId::try_from(self.names.len() - 1).unwrap_or_default()
    }

    fn pattern(&self, pattern: CountedPattern) -> Arc<str> {
        match pattern {
            CountedPattern::At(number) => self.counted.pattern(number).cloned().unwrap_or_default(),
            CountedPattern::Other => Arc::clone(&self.other),
            CountedPattern::Unmatched => Arc::default(),
        }
    }

    fn other_number(&mut self, outcome: CountedOutcome) -> SeriesId {
        let Some(late) = (outcome as usize).checked_sub(FIRST_OTHERS) else { return outcome as SeriesId };
        let next = SeriesId::try_from(self.names.len()).unwrap_or_default();
        let Some(number) = self.late_others.get_mut(late) else { return 0 };
        if number.is_none() {
            self.names.push(other_series(outcome));
        }
        *number.get_or_insert(next)
    }
}

/// Name of the series of an outcome under [`OTHER`].
fn other_series(outcome: CountedOutcome) -> SeriesName {
    let other: Arc<str> = OTHER.into();
    let (strategy, outcome) = (Arc::clone(&other), outcome.name().into());
    SeriesName { strategy, pattern: other, outcome, cost: Arc::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(place: u32, calls: u64) -> CountedTotal {
        let pattern = CountedPattern::At(place);
        CountedTotal { strategy: 0, pattern, outcome: CountedOutcome::Denied, calls, cost: 2 * calls }
    }

    #[test]
    fn more_costs_than_the_bound_are_counted_as_others_and_no_unit_is_lost() {
        let mut table = SeriesTable::new(Arc::new(CounterNames::new(&["s".into()], &["p".into()])));
        let cost = |name: usize| CountedCost {
            strategy: 0,
            pattern: CountedPattern::At(0),
            name: format!("n{name}").into(),
        };
        let mut of_others = 0;
        for name in 0..MAX_SERIES + 100 {
            let (id, calls, units) = table.units_since_last(cost(name), 7).unwrap();
            assert_eq!((calls, units), (0, 7));
            let SeriesName { strategy, outcome, cost, .. } = table.name_at(usize::from(id)).unwrap();
            assert_eq!(&**outcome, "allowed");
            of_others += usize::from(&**strategy == OTHER && &**cost == OTHER);
        }
        assert_eq!(of_others, 100);
        assert_eq!(table.units_since_last(cost(0), 7), None);
        assert_eq!(table.units_since_last(cost(0), 9).unwrap().2, 2);
    }

    #[test]
    fn more_series_than_the_bound_are_counted_as_others_and_none_is_lost() {
        let patterns: Vec<Arc<str>> = (0..6_000).map(|index| format!("p{index}").into()).collect();
        let mut table = SeriesTable::new(Arc::new(CounterNames::new(&["s".into()], &patterns)));
        let mut of_others = 0;
        for place in 0..6_000 {
            let (id, calls, cost) = table.since_last(&total(place, 3)).unwrap();
            assert_eq!((calls, cost), (3, 6));
            if &*table.name_at(usize::from(id)).unwrap().strategy == OTHER {
                assert_eq!(&*table.name_at(usize::from(id)).unwrap().outcome, "denied");
                of_others += calls;
            }
        }
        assert_eq!(of_others, 3_000);
        assert_eq!(table.names.len(), MAX_SERIES + FIRST_OTHERS);
        for _ in 0..2 {
            let peeked = CountedTotal { outcome: CountedOutcome::Peeked, ..total(0, 3) };
            let (id, ..) = table.since_last(&peeked).unwrap_or((table.len() as SeriesId - 1, 0, 0));
            let name = table.name_at(usize::from(id)).unwrap();
            assert_eq!((&*name.strategy, &*name.outcome), (OTHER, "peeked"));
        }
        assert_eq!(table.names.len(), MAX_SERIES + FIRST_OTHERS + 1);
        assert_eq!(table.since_last(&total(5_999, 3)), None);
        assert_eq!(table.since_last(&total(5_999, 4)).unwrap().1, 1);
        let late = CountedTotal { cost: 9, ..total(5_999, 4) };
        let (_, calls, cost) = table.since_last(&late).unwrap();
        assert_eq!((calls, cost), (0, 1), "a cost that is counted after its call was read is not lost");
    }
}
