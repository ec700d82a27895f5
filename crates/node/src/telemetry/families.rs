//! Families of metrics, written by hand: collectors that sum at scrape time make them.

use prometheus::core::Collector;
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::Metrics;

impl Metrics {
    /// Shows the metrics of a feature.
    pub(crate) fn show(&self, collector: Box<dyn Collector>) -> Result<(), prometheus::Error> {
        self.registry.register(collector)
    }
}

/// A metric family. Registries refuse empty ones, so `metrics` has at least one.
#[must_use]
pub fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

/// A counter with these labels.
#[must_use]
pub fn counter(labels: &[(&str, &str)], count: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(count as f64);
    let mut metric = labelled(labels);
    metric.set_counter(counter);
    metric
}

/// A metric with these labels, and no value yet.
#[must_use]
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
