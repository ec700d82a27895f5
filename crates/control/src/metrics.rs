//! Metrics of bans. Denials by bans are decisions with the outcome `banned`.

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, Metric, MetricFamily, MetricType};
use weir_node::telemetry::families::{counter, family, labelled};

/// Numbers of bans of a node at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BanCounts {
    /// Bans that the node knows.
    pub active: usize,
    /// Callers whose denials are counted.
    pub counted: usize,
    /// Bans that the node has made.
    pub made: u64,
    /// Bans that were lifted through the node.
    pub lifted: u64,
}

const FAMILIES: [(&str, &str, MetricType); 4] = [
    ("weir_bans", "Bans in force that this node knows.", MetricType::GAUGE),
    ("weir_ban_counted_callers", "Callers whose denials are counted for bans.", MetricType::GAUGE),
    ("weir_bans_made_total", "Bans that this node has made.", MetricType::COUNTER),
    ("weir_bans_lifted_total", "Bans that were lifted through this node.", MetricType::COUNTER),
];

/// Collector over a function that returns the counts.
pub(crate) struct BanCollector<F> {
    counts: F,
    descriptions: Vec<Desc>,
}

impl<F> BanCollector<F> {
    pub(crate) fn new(counts: F) -> Result<Self, prometheus::Error> {
        let describe = |(name, help, _): (&str, &str, MetricType)| {
            Desc::new(name.to_owned(), help.to_owned(), Vec::new(), HashMap::new())
        };
        Ok(Self { counts, descriptions: FAMILIES.into_iter().map(describe).collect::<Result<_, _>>()? })
    }
}

impl<F: Fn() -> BanCounts + Send + Sync> Collector for BanCollector<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let BanCounts { active, counted, made, lifted } = (self.counts)();
        let values = [gauge(active as f64), gauge(counted as f64), counter(&[], made), counter(&[], lifted)];
        FAMILIES
            .into_iter()
            .zip(values)
            .map(|((name, help, kind), value)| family(name, help, kind, vec![value]))
            .collect()
    }
}

fn gauge(value: f64) -> Metric {
    let (mut metric, mut gauge) = (labelled(&[]), Gauge::default());
    gauge.set_value(value);
    metric.set_gauge(gauge);
    metric
}
