//! Metrics of costs by name, of holds, and of limits that are nearly used.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Metric, MetricFamily, MetricType};
use weir_core::algorithm::budget::{BudgetVerdict, CostedLimits, LimitCost, SettleOutcome};
use weir_core::algorithm::{Algorithm, LimitVerdict};
use weir_core::strategy::{Rules, Strategy};
use weir_time::clock::monotonic;

use super::families::{counter, family};

/// Shortest time between two lines about one limit.
const LINE_EVERY: Duration = Duration::from_secs(10);

const HOLD_OUTCOMES: [&str; 5] = ["held", "repeated", "settled", "late", "unknown"];
const KINDS: [&str; 3] = ["granted", "used", "uncharged"];

const FAMILIES: [(&str, &str, &[&str]); 3] = [
    ("weir_holds_total", "Holds and settlements by strategy and outcome.", &["strategy", "outcome"]),
    (
        "weir_cost_units_total",
        "Units by strategy, cost and kind: granted, used, and uncharged because of max_debt.",
        &["strategy", "cost", "kind"],
    ),
    (
        "weir_near_limit_total",
        "How often a call took the use of a limit over its near_limit, by strategy and limit.",
        &["strategy", "limit"],
    ),
];

/// One worker's counts, by the names of strategies.
#[derive(Debug, Default)]
pub(crate) struct CostCounts(Mutex<HashMap<Box<str>, StrategyCosts>>);

#[derive(Debug, Default, Clone)]
struct StrategyCosts {
    holds: [u64; HOLD_OUTCOMES.len()],
    costs: BTreeMap<Box<str>, [u64; KINDS.len()]>,
    near: BTreeMap<Box<str>, u64>,
}

/// The series of a configuration, each with 0.
#[derive(Debug, Default)]
pub(super) struct CostLayout(BTreeMap<Box<str>, StrategyCosts>);

impl CostLayout {
    pub(super) fn of(rules: &Rules) -> Self {
        let costs = |strategy: &Strategy| {
            let mut zero = StrategyCosts::default();
            let names = strategy.costed().map(|costed| &*costed.names).unwrap_or_default();
            zero.costs.extend(names.iter().map(|name| (name.clone(), [0; KINDS.len()])));
            let marks = strategy.marks().map(|marks| &*marks.near_percent).unwrap_or_default();
            let near = strategy.limits().iter().zip(marks).filter(|(_, percent)| percent.is_some());
            zero.near.extend(near.map(|(limit, _)| (limit.name.clone(), 0)));
            zero
        };
        let shown = rules.strategies().iter().filter(|one| one.costed().is_some() || one.marks().is_some());
        Self(shown.map(|strategy| (strategy.name().into(), costs(strategy))).collect())
    }
}

impl CostCounts {
    /// Counts a question that was no peek.
    pub(crate) fn asked(
        &self,
        (strategy, consumer): (&Strategy, &str),
        costed: &CostedLimits,
        verdict: &BudgetVerdict,
    ) {
        let mut all = self.0.lock();
        let counts = all.entry(strategy.name().into()).or_default();
        if verdict.held_for.is_some() {
            counts.holds[usize::from(!verdict.applied)] += 1;
        }
        if verdict.applied {
            let is_used = verdict.held_for.is_none();
            for (name, units) in granted(costed, verdict) {
                let kinds = counts.costs.entry(name.clone()).or_default();
                kinds[0] += units;
                kinds[1] += if is_used { units } else { 0 };
            }
        }
        crossed(counts, (strategy, consumer), verdict);
    }

    /// Counts a limit whose use a decision without costs by limit took over its mark.
    pub(crate) fn crossed(
        &self,
        (strategy, limit): (&str, &str),
        consumer: &str,
        said: &LimitVerdict,
        algorithm: &Algorithm,
    ) {
        *self.0.lock().entry(strategy.into()).or_default().near.entry(limit.into()).or_default() += 1;
        say((strategy, limit), consumer, (said.remaining, algorithm.limit()));
    }

    /// Counts a settlement, or a debit, which has no outcome.
    pub(crate) fn used(
        &self,
        (strategy, consumer): (&Strategy, &str),
        costed: &CostedLimits,
        verdict: &BudgetVerdict,
    ) {
        let mut all = self.0.lock();
        let counts = all.entry(strategy.name().into()).or_default();
        let outcome = verdict.outcome.map(|outcome| match outcome {
            _ if !verdict.applied => 1,
            SettleOutcome::Settled => 2,
            SettleOutcome::Late => 3,
            SettleOutcome::Unknown => 4,
        });
        outcome.into_iter().for_each(|place| counts.holds[place] += 1);
        if verdict.applied {
            for (index, name) in costed.names.iter().enumerate() {
                let own = costed.limits.iter().zip(&verdict.limits);
                let own =
                    own.filter(|(limit, one)| limit.cost == LimitCost::Named(index) && one.charged.is_some());
                let kinds = counts.costs.entry(name.clone()).or_default();
                kinds[1] += own.clone().map(|(_, one)| one.cost).max().unwrap_or(0);
                // Only a limit that is deep in debt leaves something uncharged.
                let full = own.filter(|(_, one)| one.remaining == 0);
                let left = full.map(|(limit, one)| {
                    let kept = one.granted.filter(|_| limit.at_once).unwrap_or(0);
                    one.cost.saturating_sub(kept).saturating_sub(one.charged.unwrap_or(0))
                });
                kinds[2] += left.max().unwrap_or(0);
            }
        }
        crossed(counts, (strategy, consumer), verdict);
    }
}

/// What each name was granted; limits that share a name have granted the same.
fn granted<'c>(
    costed: &'c CostedLimits,
    verdict: &'c BudgetVerdict,
) -> impl Iterator<Item = (&'c Box<str>, u64)> {
    costed.names.iter().enumerate().map(|(index, name)| {
        let own = costed.limits.iter().zip(&verdict.limits);
        let own = own.filter(move |(limit, _)| limit.cost == LimitCost::Named(index));
        (name, own.filter_map(|(_, one)| one.granted).max().unwrap_or(0))
    })
}

fn crossed(counts: &mut StrategyCosts, (strategy, consumer): (&Strategy, &str), verdict: &BudgetVerdict) {
    for (limit, one) in strategy.limits().iter().zip(&verdict.limits).filter(|(_, one)| one.crossed_near) {
        *counts.near.entry(limit.name.clone()).or_default() += 1;
        say((strategy.name(), &limit.name), consumer, (one.remaining, limit.algorithm.limit()));
    }
}

/// The last line about each limit, by its strategy and its name, and how many were left out since.
type SaidLines = BTreeMap<(Box<str>, Box<str>), (Instant, u64)>;

/// Says that a limit is nearly used: at most one line in ten seconds, with the count of those that were left out.
fn say((strategy, limit): (&str, &str), consumer: &str, (remaining, most): (u64, u64)) {
    static SAID: Mutex<SaidLines> = Mutex::new(BTreeMap::new());
    let now = monotonic();
    let mut said = SAID.lock();
    let left_out = match said.get_mut(&(strategy.into(), limit.into())) {
        Some((at, left_out)) if now.saturating_duration_since(*at) < LINE_EVERY => {
            *left_out += 1;
            return;
        }
        Some(known) => std::mem::replace(known, (now, 0)).1,
        None => {
            // Limits of older configurations need no place.
            said.retain(|_, (at, _)| now.saturating_duration_since(*at) < LINE_EVERY);
            said.insert((strategy.into(), limit.into()), (now, 0));
            0
        }
    };
    drop(said);
    tracing::info!(strategy, limit, consumer, remaining, most, left_out, "a limit is nearly used");
}

/// Collector over a function that returns the series and the workers' counts.
pub(super) struct CostCollector<F> {
    read: F,
    descriptions: Vec<Desc>,
}

impl<F> CostCollector<F> {
    pub(super) fn new(read: F) -> Result<Self, prometheus::Error> {
        let describe = |(name, help, labels): (&str, &str, &[&str])| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
        };
        Ok(Self { read, descriptions: FAMILIES.into_iter().map(describe).collect::<Result<_, _>>()? })
    }
}

/// Adds the workers' counts to the series of `layout`.
pub(super) fn summed<'w>(layout: &CostLayout, workers: impl Iterator<Item = &'w CostCounts>) -> CostSums {
    let mut sums = layout.0.clone();
    for worker in workers {
        for (name, counts) in &*worker.0.lock() {
            let Some(sum) = sums.get_mut(name) else { continue };
            sum.holds.iter_mut().zip(counts.holds).for_each(|(sum, count)| *sum += count);
            for (name, kinds) in &counts.costs {
                let sum = sum.costs.entry(name.clone()).or_default();
                sum.iter_mut().zip(kinds).for_each(|(sum, count)| *sum += count);
            }
            for (limit, count) in &counts.near {
                *sum.near.entry(limit.clone()).or_default() += count;
            }
        }
    }
    CostSums(sums)
}

/// The sums of all workers.
pub(super) struct CostSums(BTreeMap<Box<str>, StrategyCosts>);

impl CostSums {
    fn metrics(&self) -> [Vec<Metric>; 3] {
        let [mut holds, mut units, mut near] = [const { Vec::new() }; 3];
        for (strategy, sums) in &self.0 {
            for (outcome, count) in HOLD_OUTCOMES.into_iter().zip(sums.holds) {
                holds.push(counter(&[("strategy", strategy), ("outcome", outcome)], count));
            }
            for (cost, kinds) in &sums.costs {
                for (kind, count) in KINDS.into_iter().zip(kinds) {
                    units.push(counter(&[("strategy", strategy), ("cost", cost), ("kind", kind)], *count));
                }
            }
            for (limit, count) in &sums.near {
                near.push(counter(&[("strategy", strategy), ("limit", limit)], *count));
            }
        }
        [holds, units, near]
    }
}

impl<F: Fn() -> CostSums + Send + Sync> Collector for CostCollector<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let families = FAMILIES.into_iter().zip((self.read)().metrics());
        let families = families.filter(|(_, metrics)| !metrics.is_empty());
        families.map(|((name, help, _), metrics)| family(name, help, MetricType::COUNTER, metrics)).collect()
    }
}
