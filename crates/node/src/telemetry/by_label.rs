//! Metrics with one label whose values are kept elsewhere and read when the metrics page is.

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, Metric, MetricFamily, MetricType};

use super::families::{counter, family, labelled};

/// One metric with one label.
pub(super) struct LabelledSeries {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricType,
    pub(super) label: &'static str,
}

/// Refused calls.
pub(super) const REFUSED_CALLS: LabelledSeries = LabelledSeries {
    name: "weir_refused_calls_total",
    help: "Calls and questions that were refused for want of a credential or a right.",
    kind: MetricType::COUNTER,
    label: "reason",
};

/// Files whose newest version is not in force.
pub(super) const REFUSED_FILES: LabelledSeries = LabelledSeries {
    name: "weir_files_refused",
    help: "Whether the newest version of these files has mistakes, so that an older one is in force: 1 or 0.",
    kind: MetricType::GAUGE,
    label: "files",
};

/// Collector over a function that returns each value of the label with its number.
pub(super) struct ByLabel<F> {
    series: LabelledSeries,
    counts: F,
    description: Desc,
}

impl<F: Fn() -> Vec<(&'static str, u64)> + Send + Sync> ByLabel<F> {
    pub(super) fn new(series: LabelledSeries, counts: F) -> Result<Self, prometheus::Error> {
        let LabelledSeries { name, help, label, .. } = series;
        let description =
            Desc::new(name.to_owned(), help.to_owned(), vec![label.to_owned()], HashMap::new())?;
        Ok(Self { series, counts, description })
    }

    fn metric(&self, value: &str, count: u64) -> Metric {
        let labels = [(self.series.label, value)];
        if self.series.kind == MetricType::COUNTER {
            return counter(&labels, count);
        }
        let (mut metric, mut gauge) = (labelled(&labels), Gauge::default());
        gauge.set_value(count as f64);
        metric.set_gauge(gauge);
        metric
    }
}

impl<F: Fn() -> Vec<(&'static str, u64)> + Send + Sync> Collector for ByLabel<F> {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let LabelledSeries { name, help, kind, .. } = self.series;
        let metrics = (self.counts)().into_iter().map(|(value, count)| self.metric(value, count));
        vec![family(name, help, kind, metrics.collect())]
    }
}
