//! Strategies that nodes count on their own: what they admitted above the limit, beside the bound. Labels are configured
//! names.

use prometheus::proto::Metric;
use weir_store::approximate::{ApproximateStats, StrategyCounting};

use super::Metrics;
use super::families::{FamilySpec, counter, gauge};

const FAMILIES: [FamilySpec; 6] = [
    FamilySpec::gauge(
        "weir_approximate_over_admitted",
        "The most units above the limit that nodes admitted of one key in one window, as far as this node heard.",
        &["strategy"],
    ),
    FamilySpec::gauge(
        "weir_approximate_max_over",
        "The bound of the units above the limit: approximate.max_over.",
        &["strategy"],
    ),
    FamilySpec::gauge(
        "weir_approximate_has_place",
        "1 if this node counts the strategy on its own, 0 if Redis decides all.",
        &["strategy"],
    ),
    FamilySpec::counter(
        "weir_approximate_pushes_total",
        "Keys of which this node has told Redis what it admitted.",
        &["strategy"],
    ),
    FamilySpec::counter(
        "weir_approximate_decisions_total",
        "Decisions under such strategies, by who decided.",
        &["by"],
    ),
    FamilySpec::gauge("weir_approximate_keys", "Keys that this node counts on its own; at most 100000.", &[]),
];

impl Metrics {
    /// Registers the counts of strategies that nodes count on their own.
    pub fn show_approximate(
        &self,
        stats: impl Fn() -> ApproximateStats + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.show_families(FAMILIES, move || metrics(&stats()))
    }
}

/// The metrics of `stats`; none without a strategy.
fn metrics(stats: &ApproximateStats) -> [Vec<Metric>; FAMILIES.len()] {
    if stats.strategies.is_empty() {
        return Default::default();
    }
    let gauges = |value: fn(&StrategyCounting) -> f64| {
        stats.strategies.iter().map(|(name, one)| gauge(&[("strategy", name)], value(one))).collect()
    };
    let pushes = stats.strategies.iter().map(|(name, one)| counter(&[("strategy", name)], one.pushed));
    let decisions = [("node", stats.by_node), ("redis", stats.by_store)];
    [
        gauges(|counting| counting.over_admitted as f64),
        gauges(|counting| counting.max_over as f64),
        gauges(|counting| f64::from(u8::from(counting.has_place))),
        pushes.collect(),
        decisions.map(|(by, count)| counter(&[("by", by)], count)).to_vec(),
        vec![gauge(&[], stats.keys as f64)],
    ]
}
