//! Metrics whose values are kept elsewhere and read when the metrics page is.

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Metric, MetricFamily, MetricType};

use super::families::{self, family};

/// One metric without labels.
pub struct Series {
    /// The name.
    pub name: &'static str,
    /// A sentence about it.
    pub help: &'static str,
    /// A counter or a gauge.
    pub kind: MetricType,
}

impl Series {
    /// Creates a counter.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricType::COUNTER }
    }

    /// Creates a gauge.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricType::GAUGE }
    }
}

/// `N` metrics that one call of `read` returns, in the same order. Those without a value are left out.
pub struct Sampled<const N: usize, F> {
    series: [Series; N],
    descriptions: Vec<Desc>,
    read: F,
}

impl<const N: usize, V: Into<Option<f64>>, F: Fn() -> [V; N] + Send + Sync> Sampled<N, F> {
    /// Creates the collector.
    pub fn new(series: [Series; N], read: F) -> Result<Self, prometheus::Error> {
        let describe = |series: &Series| {
            Desc::new(series.name.to_owned(), series.help.to_owned(), Vec::new(), HashMap::new())
        };
        let descriptions = series.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { series, descriptions, read })
    }
}

impl<const N: usize, V: Into<Option<f64>>, F: Fn() -> [V; N] + Send + Sync> Collector for Sampled<N, F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let families = self.series.iter().zip((self.read)());
        families
            .filter_map(|(series, value)| {
                let metric = metric(series, value.into()?);
                Some(family(series.name, series.help, series.kind, vec![metric]))
            })
            .collect()
    }
}

fn metric(series: &Series, value: f64) -> Metric {
    if series.kind != MetricType::COUNTER {
        return gauge(value);
    }
    let (mut metric, mut counter) = (Metric::default(), Counter::default());
    counter.set_value(value);
    metric.set_counter(counter);
    metric
}

/// A gauge without labels.
pub fn gauge(value: f64) -> Metric {
    families::gauge(&[], value)
}
