//! Counts of costs by name, of holds, and of limits that are nearly used.

mod held;
mod line;
mod used;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::proto::Metric;
use weir_core::algorithm::budget::{
    BudgetLimitVerdict, BudgetVerdict, CostedLimits, LimitCost, SettleOutcome,
};
use weir_core::algorithm::{Algorithm, LimitVerdict};
use weir_core::key::Subject;
use weir_core::strategy::{Rules, Strategy};
use weir_time::clock::monotonic;

use self::held::{HeldKeys, HeldSums};
pub use self::used::CountedCost;
use self::used::UsedCosts;
use super::families::{FamilySpec, counter, gauge};
use super::names::{CostUnits, CountedPattern, CounterNames, LimitUnit};

const HOLD_OUTCOMES: [&str; 5] = ["held", "repeated", "settled", "late", "unknown"];
const KINDS: [&str; 3] = ["granted", "used", "uncharged"];

pub(super) const FAMILIES: [FamilySpec; 4] = [
    FamilySpec::counter(
        "weir_holds_total",
        "Holds and settlements by strategy and outcome.",
        &["strategy", "outcome"],
    ),
    FamilySpec::counter(
        "weir_cost_units_total",
        "Units by strategy, cost and kind: granted, used, and uncharged because of max_debt.",
        &["strategy", "cost", "kind"],
    ),
    FamilySpec::counter(
        "weir_near_limit_total",
        "How often a call took the use of a limit over its near_limit, by strategy and limit.",
        &["strategy", "limit"],
    ),
    FamilySpec::gauge(
        "weir_held_units",
        "Units in open holds, as the store's last answers to this node said, summed over the keys of a limit.",
        &["strategy", "limit"],
    ),
];

#[derive(Debug, Default)]
pub(crate) struct CostCounts(Mutex<CountedCosts>);

#[derive(Debug, Default)]
struct CountedCosts {
    /// Metrics, by the names of strategies.
    strategies: HashMap<Box<str>, StrategyCosts>,
    used: UsedCosts,
    held: HeldKeys,
}

#[derive(Debug, Default, Clone)]
struct StrategyCosts {
    /// True if its series have a value before anything is counted.
    is_shown: bool,
    holds: [u64; HOLD_OUTCOMES.len()],
    costs: BTreeMap<Box<str>, [u64; KINDS.len()]>,
    near: BTreeMap<Box<str>, u64>,
    /// Units in open holds, by limit.
    held: BTreeMap<Box<str>, u64>,
}

/// The series of a configuration, each with 0. Strategies without any are there too, because an override may count a limit.
#[derive(Debug, Default)]
pub(super) struct CostLayout(BTreeMap<Box<str>, StrategyCosts>);

/// A call under a strategy whose limits have costs of their own.
pub(super) struct CostedCall<'a> {
    pub(super) strategy: &'a Strategy,
    pub(super) consumer: &'a str,
    pub(super) costed: &'a CostedLimits,
    /// The numbers of the names of its strategy and its pattern.
    pub(super) place: Option<(u32, CountedPattern)>,
}

impl CostLayout {
    pub(super) fn new(rules: &Rules) -> Self {
        let costs = |strategy: &Strategy| {
            let is_shown = strategy.costed().is_some() || strategy.marks().is_some();
            let mut zero = StrategyCosts { is_shown, ..StrategyCosts::default() };
            let names = strategy.costed().map(|costed| &*costed.names).unwrap_or_default();
            zero.costs.extend(names.iter().map(|name| (name.clone(), [0; KINDS.len()])));
            let percent = |place| strategy.marks().and_then(|marks| marks.near_percent(place));
            let near = strategy.limits().iter().enumerate().filter(|(place, _)| percent(*place).is_some());
            zero.near.extend(near.map(|(_, limit)| (limit.name.clone(), 0)));
            let costed = strategy.costed().filter(|costed| costed.hold.is_some());
            let costs = costed.map(|costed| &*costed.limits).unwrap_or_default();
            let held = strategy.limits().iter().zip(costs).filter(|(_, cost)| cost.holds());
            zero.held.extend(held.map(|(limit, _)| (limit.name.clone(), 0)));
            zero
        };
        let rated = rules.strategies().iter().filter(|one| one.permits().is_none());
        Self(rated.map(|strategy| (strategy.name().into(), costs(strategy))).collect())
    }
}

/// Returns the cost and the unit of each limit.
pub(super) fn units_of(rules: &Rules) -> CostUnits {
    let units = |strategy: &Arc<Strategy>| {
        let costed = strategy.costed()?;
        let units = strategy.marks().map(|marks| &*marks.units).unwrap_or_default();
        let limits = strategy.limits().iter().zip(&costed.limits).enumerate();
        let limits = limits.filter_map(|(place, (limit, cost))| {
            let LimitCost::Named(name) = cost.cost else { return None };
            let cost = costed.names.get(name)?.clone();
            let unit = units.get(place).map(|unit| Arc::from(&**unit)).unwrap_or_default();
            Some(LimitUnit { limit: limit.name.clone(), cost, unit })
        });
        Some((strategy.name().into(), limits.collect()))
    };
    rules.strategies().iter().filter_map(units).collect()
}

impl CostCounts {
    /// Counts a question that was no peek.
    pub(super) fn asked(&self, call: &CostedCall<'_>, verdict: &BudgetVerdict) {
        let CountedCosts { strategies, used, .. } = &mut *self.0.lock();
        let counts = strategies.entry(call.strategy.name().into()).or_default();
        if verdict.held_for.is_some() {
            counts.holds[usize::from(!verdict.applied)] += 1;
        }
        if verdict.applied {
            let is_used = verdict.held_for.is_none();
            for (name, own) in by_name(call.costed, verdict) {
                let units = own.filter_map(|one| one.granted).max().unwrap_or(0);
                let kinds = counts.costs.entry(name.clone()).or_default();
                kinds[0] += units;
                if is_used {
                    kinds[1] += units;
                    used.add(call.place, name, units);
                }
            }
        }
        crossed(counts, call, verdict);
    }

    /// Counts a settlement, or a debit, which has no outcome.
    pub(super) fn used(&self, call: &CostedCall<'_>, verdict: &BudgetVerdict) {
        let CountedCosts { strategies, used, .. } = &mut *self.0.lock();
        let counts = strategies.entry(call.strategy.name().into()).or_default();
        let outcome = verdict.outcome.map(|outcome| match outcome {
            _ if !verdict.applied => 1,
            SettleOutcome::Settled => 2,
            SettleOutcome::Late => 3,
            SettleOutcome::Unknown => 4,
        });
        outcome.into_iter().for_each(|place| counts.holds[place] += 1);
        if verdict.applied {
            for (name, own) in by_name(call.costed, verdict) {
                let kinds = counts.costs.entry(name.clone()).or_default();
                let own = own.filter(|one| one.charged.is_some());
                let (units, uncharged) =
                    own.fold((0, 0), |most, one| (most.0.max(one.cost), most.1.max(one.uncharged)));
                kinds[1] += units;
                kinds[2] += uncharged;
                used.add(call.place, name, units);
            }
        }
        crossed(counts, call, verdict);
    }

    /// Remembers what an answer said of holds.
    pub(super) fn saw_holds(&self, strategy: &Strategy, subject: &Subject<'_>, verdict: &BudgetVerdict) {
        if let Some(bounds) = strategy.costed().and_then(|costed| costed.hold) {
            self.0.lock().held.saw((strategy, bounds), subject, verdict, monotonic());
        }
    }

    /// Counts a limit whose use a decision without costs by limit took over its mark.
    pub(crate) fn crossed(
        &self,
        (strategy, limit): (&str, &str),
        consumer: &str,
        said: &LimitVerdict,
        algorithm: &Algorithm,
    ) {
        let strategies = &mut self.0.lock().strategies;
        *strategies.entry(strategy.into()).or_default().near.entry(limit.into()).or_default() += 1;
        line::say((strategy, limit), consumer, (said.remaining, algorithm.limit()));
    }

    /// Drops the counts of names that are not shown any more.
    pub(super) fn retain(&self, names: &CounterNames) {
        let CountedCosts { strategies, used, .. } = &mut *self.0.lock();
        strategies.retain(|name, _| names.strategies.has(name));
        used.retain(names);
    }

    /// Adds the units that were used so far.
    pub(super) fn add_used(&self, sums: &mut BTreeMap<CountedCost, u64>) {
        self.0.lock().used.add_to(sums);
    }
}

/// The answers of the limits of each name. Limits that share a name grant the same.
fn by_name<'c>(
    costed: &'c CostedLimits,
    verdict: &'c BudgetVerdict,
) -> impl Iterator<Item = (&'c Box<str>, impl Iterator<Item = &'c BudgetLimitVerdict>)> {
    costed.names.iter().enumerate().map(|(index, name)| {
        let own = costed.limits.iter().zip(&verdict.limits);
        (name, own.filter(move |(limit, _)| limit.cost == LimitCost::Named(index)).map(|(_, one)| one))
    })
}

fn crossed(counts: &mut StrategyCosts, call: &CostedCall<'_>, verdict: &BudgetVerdict) {
    let limits = call.strategy.limits().iter().zip(&verdict.limits);
    for (limit, one) in limits.filter(|(_, one)| one.crossed_near) {
        *counts.near.entry(limit.name.clone()).or_default() += 1;
        let (names, numbers) =
            ((call.strategy.name(), &*limit.name), (one.remaining, limit.algorithm.limit()));
        line::say(names, call.consumer, numbers);
    }
}

/// Adds the workers' counts to the series of `layout`.
pub(super) fn summed<'w>(layout: &CostLayout, workers: impl Iterator<Item = &'w CostCounts>) -> CostSums {
    let (mut sums, mut held, now) = (layout.0.clone(), HeldSums::default(), monotonic());
    for worker in workers {
        let worker = worker.0.lock();
        held.add(&worker.held, now);
        for (name, counts) in &worker.strategies {
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
    for ((strategy, limit), units) in held.by_limit() {
        // Limits that hold nothing any more, after a reload, are not shown.
        if let Some(sum) = sums.get_mut(&strategy).and_then(|sums| sums.held.get_mut(&limit)) {
            *sum += units;
        }
    }
    CostSums(sums)
}

pub(super) struct CostSums(BTreeMap<Box<str>, StrategyCosts>);

impl CostSums {
    pub(super) fn metrics(&self) -> [Vec<Metric>; FAMILIES.len()] {
        let [mut holds, mut units, mut near, mut held] = [const { Vec::new() }; FAMILIES.len()];
        for (strategy, sums) in &self.0 {
            for (outcome, count) in HOLD_OUTCOMES.into_iter().zip(sums.holds).filter(|_| sums.is_shown) {
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
            for (limit, count) in &sums.held {
                held.push(gauge(&[("strategy", strategy), ("limit", limit)], *count as f64));
            }
        }
        [holds, units, near, held]
    }
}
