//! Families of metrics, written by hand: collectors that sum at scrape time make them.

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use super::Metrics;

/// A family as registries must know it.
pub struct FamilySpec {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricType,
    pub(super) labels: &'static [&'static str],
}

impl FamilySpec {
    /// Creates a family of counters with these labels.
    pub const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Self {
        Self { name, help, kind: MetricType::COUNTER, labels }
    }

    /// Creates a family of gauges with these labels.
    pub const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Self {
        Self { name, help, kind: MetricType::GAUGE, labels }
    }

    /// Creates a family of histograms with these labels.
    pub const fn histogram(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Self {
        Self { name, help, kind: MetricType::HISTOGRAM, labels }
    }

    fn description(&self) -> Result<Desc, prometheus::Error> {
        let labels = self.labels.iter().map(|&label| label.to_owned()).collect();
        Desc::new(self.name.to_owned(), self.help.to_owned(), labels, HashMap::new())
    }
}

/// Collector of the families that one call of `read` returns, in the order of `specs`. Empty ones are left out, because
/// registries refuse them.
pub struct FamilyCollector<const N: usize, F> {
    specs: [FamilySpec; N],
    descriptions: Vec<Desc>,
    read: F,
}

impl<const N: usize, F: Fn() -> [Vec<Metric>; N] + Send + Sync> FamilyCollector<N, F> {
    /// Creates the collector.
    pub fn new(specs: [FamilySpec; N], read: F) -> Result<Self, prometheus::Error> {
        let descriptions = specs.iter().map(FamilySpec::description).collect::<Result<_, _>>()?;
        Ok(Self { specs, descriptions, read })
    }
}

impl<const N: usize, F: Fn() -> [Vec<Metric>; N] + Send + Sync> Collector for FamilyCollector<N, F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let families = self.specs.iter().zip((self.read)()).filter(|(_, metrics)| !metrics.is_empty());
        families.map(|(spec, metrics)| family(spec.name, spec.help, spec.kind, metrics)).collect()
    }
}

impl Metrics {
    pub(crate) fn show(&self, collector: Box<dyn Collector>) -> Result<(), prometheus::Error> {
        self.registry.register(collector)
    }

    pub(super) fn show_families<const N: usize>(
        &self,
        specs: [FamilySpec; N],
        read: impl Fn() -> [Vec<Metric>; N] + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(FamilyCollector::new(specs, read)?))
    }
}

/// A metric family. Registries refuse empty ones, so `metrics` has at least one.
pub fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

/// A counter with these labels.
pub fn counter(labels: &[(&str, &str)], count: u64) -> Metric {
    counter_of(labels, count as f64)
}

/// A counter whose value is no whole number.
pub(super) fn counter_of(labels: &[(&str, &str)], value: f64) -> Metric {
    let (mut metric, mut counter) = (labelled(labels), Counter::default());
    counter.set_value(value);
    metric.set_counter(counter);
    metric
}

/// A gauge with these labels.
pub fn gauge(labels: &[(&str, &str)], value: f64) -> Metric {
    let (mut metric, mut gauge) = (labelled(labels), Gauge::default());
    gauge.set_value(value);
    metric.set_gauge(gauge);
    metric
}

/// A metric with these labels, and no value yet.
pub fn labelled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

/// Adds labels to each metric of a family that has none of their names.
pub(super) fn label_all(family: &mut MetricFamily, labels: &[(String, String)]) {
    for metric in family.mut_metric() {
        let mut all = metric.take_label();
        for (name, value) in labels {
            if !all.iter().any(|label| label.name() == name) {
                let mut pair = LabelPair::default();
                pair.set_name(name.clone());
                pair.set_value(value.clone());
                all.push(pair);
            }
        }
        metric.set_label(all);
    }
}
