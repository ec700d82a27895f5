//! Strategies that nodes count on their own: what they admitted above the limit, beside the bound. Labels are configured
//! names.

use std::collections::HashMap;
use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Metric, MetricFamily, MetricType};
use weir_store::approximate::{ApproximateStats, StrategyCounting};

use super::families::{counter, family, labelled};
use super::sampled::gauge;

const FAMILIES: [(&str, &str, MetricType, &[&str]); 6] = [
    (
        "weir_approximate_over_admitted",
        "The most units above the limit that nodes admitted of one key in one window, as far as this node heard.",
        MetricType::GAUGE,
        &["strategy"],
    ),
    (
        "weir_approximate_max_over",
        "The bound of the units above the limit: approximate.max_over.",
        MetricType::GAUGE,
        &["strategy"],
    ),
    (
        "weir_approximate_has_place",
        "1 if this node counts the strategy on its own, 0 if Redis decides all.",
        MetricType::GAUGE,
        &["strategy"],
    ),
    (
        "weir_approximate_pushes_total",
        "Keys of which this node has told Redis what it admitted.",
        MetricType::COUNTER,
        &["strategy"],
    ),
    (
        "weir_approximate_decisions_total",
        "Decisions under such strategies, by who decided.",
        MetricType::COUNTER,
        &["by"],
    ),
    (
        "weir_approximate_keys",
        "Keys that this node counts on its own; at most 100000.",
        MetricType::GAUGE,
        &[],
    ),
];

/// Collector for a registry.
pub(super) struct ApproximateCollector<F> {
    stats: F,
    descriptions: Vec<Desc>,
}

impl<F: Fn() -> ApproximateStats + Send + Sync> ApproximateCollector<F> {
    pub(super) fn new(stats: F) -> Result<Self, prometheus::Error> {
        let describe = |(name, help, _, labels): &(&str, &str, _, &[&str])| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new((*name).to_owned(), (*help).to_owned(), labels, HashMap::new())
        };
        let descriptions = FAMILIES.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { stats, descriptions })
    }
}

impl<F: Fn() -> ApproximateStats + Send + Sync> Collector for ApproximateCollector<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let stats = (self.stats)();
        // Registries refuse empty families.
        if stats.strategies.is_empty() {
            return Vec::new();
        }
        let gauges = |value: fn(&StrategyCounting) -> f64| -> Vec<Metric> {
            let one = |(name, counting): (&Arc<str>, &StrategyCounting)| {
                let mut metric = gauge(value(counting));
                metric.set_label(labelled(&[("strategy", name)]).take_label());
                metric
            };
            stats.strategies.iter().map(one).collect()
        };
        let pushes = stats.strategies.iter().map(|(name, one)| counter(&[("strategy", name)], one.pushed));
        let decisions = [("node", stats.by_node), ("redis", stats.by_store)];
        let metrics: [Vec<Metric>; 6] = [
            gauges(|counting| counting.over_admitted as f64),
            gauges(|counting| counting.max_over as f64),
            gauges(|counting| f64::from(u8::from(counting.has_place))),
            pushes.collect(),
            decisions.map(|(by, count)| counter(&[("by", by)], count)).to_vec(),
            vec![gauge(stats.keys as f64)],
        ];
        let families = FAMILIES.iter().zip(metrics);
        families.map(|((name, help, kind, _), metrics)| family(name, help, *kind, metrics)).collect()
    }
}
