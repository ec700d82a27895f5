//! `weir_denials_total`: which limit denied. Rows are laid out for each configuration, so that a denial counts by
//! two indices and looks nothing up.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus::proto::Metric;
use weir_core::strategy::{Rules, StrategyRule};

use super::families::counter;
use super::names::CounterNames;

/// Removed limits whose counters are still shown.
const MAX_REMOVED: usize = 1_000;

/// Label of the one limit of a strategy with permits.
const PERMITS: &str = "permits";

/// Label of all limits that requests bring along.
const INLINE: &str = "inline";

/// A limit: the number of its strategy's name, and its own name.
pub(super) type LimitName = (u32, Arc<str>);

pub(super) type DenialSums = BTreeMap<LimitName, u64>;

#[derive(Debug)]
pub(super) struct DenialLayout {
    /// Places where the limits of each strategy begin, and where the last ones end.
    begins: Vec<usize>,
    limits: Vec<LimitName>,
}

/// One worker's denials by limit.
#[derive(Debug)]
pub(super) struct DenialCounts(Box<[AtomicU64]>);

impl DenialLayout {
    /// The limits of `rules`, whose strategies have these numbers, in the order of `Rules::counted_names`.
    pub(super) fn new(rules: &Rules, numbers: &[u32]) -> Self {
        let (mut begins, mut limits) = (vec![0], Vec::new());
        for (index, &number) in numbers.iter().enumerate() {
            match rules.strategies().get(index).map(|strategy| strategy.rule()) {
                Some(StrategyRule::Rates(_)) => {
                    let own = rules.strategies().get(index).map_or(&[][..], |strategy| strategy.limits());
                    limits.extend(own.iter().map(|limit| (number, Arc::from(&*limit.name))));
                }
                Some(StrategyRule::Permits(_)) => limits.push((number, Arc::from(PERMITS))),
                None => limits.push((number, Arc::from(INLINE))),
            }
            begins.push(limits.len());
        }
        Self { begins, limits }
    }

    /// The row of a limit, by the indices of its strategy and of itself. A strategy with other limits than it was
    /// laid out for, as inline ones have, counts under its last one.
    #[inline]
    fn row(&self, strategy: usize, limit: usize) -> Option<usize> {
        let (begin, end) = (*self.begins.get(strategy)?, *self.begins.get(strategy + 1)?);
        (begin < end).then(|| (begin + limit).min(end - 1))
    }
}

impl DenialCounts {
    pub(super) fn new(layout: &DenialLayout) -> Self {
        Self(layout.limits.iter().map(|_| AtomicU64::default()).collect())
    }

    #[inline]
    pub(super) fn count(&self, layout: &DenialLayout, strategy: usize, limit: usize) {
        if let Some(count) = layout.row(strategy, limit).and_then(|row| self.0.get(row)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Adds the counts to `sums`: a row for each limit, also at 0.
    pub(super) fn add_to(&self, layout: &DenialLayout, sums: &mut DenialSums) {
        for (limit, count) in layout.limits.iter().zip(&self.0) {
            *sums.entry(limit.clone()).or_default() += count.load(Relaxed);
        }
    }
}

/// Drops what is not shown any more: limits of strategies without a name, and what is beyond the bound. `configured`
/// are the limits of the current configuration.
pub(super) fn retain(sums: &mut DenialSums, configured: &DenialLayout, names: &CounterNames) {
    sums.retain(|(strategy, _), _| names.strategy(*strategy).is_some());
    if sums.len() > configured.limits.len() + MAX_REMOVED {
        let configured: HashSet<&LimitName> = configured.limits.iter().collect();
        let removed = sums.keys().filter(|limit| !configured.contains(limit));
        let removed: Vec<LimitName> = removed.cloned().collect();
        let surplus = removed.len().saturating_sub(MAX_REMOVED);
        removed.iter().take(surplus).for_each(|limit| {
            sums.remove(limit);
        });
    }
}

/// The metrics of all limits: those of `layout`, and removed ones.
pub(super) fn metrics(mut sums: DenialSums, layout: &DenialLayout, names: &CounterNames) -> Vec<Metric> {
    for limit in &layout.limits {
        sums.entry(limit.clone()).or_default();
    }
    let one = |((strategy, limit), count): (LimitName, u64)| {
        let strategy = names.strategy(strategy)?;
        Some(counter(&[("strategy", strategy), ("limit", &limit)], count))
    };
    sums.into_iter().filter_map(one).collect()
}
