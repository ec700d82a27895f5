//! Metrics whose values are kept elsewhere and read when the metrics page is.

use prometheus::core::Collector;
use prometheus::proto::{Metric, MetricType};

use super::families::{FamilyCollector, FamilySpec, counter_of, gauge};

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

    fn metric(kind: MetricType, value: f64) -> Metric {
        if kind == MetricType::COUNTER { counter_of(&[], value) } else { gauge(&[], value) }
    }
}

/// Creates the collector of `N` metrics that one call of `read` returns, in the same order. Those without a value are left
/// out.
pub fn sampled<const N: usize, V: Into<Option<f64>> + 'static>(
    series: [Series; N],
    read: impl Fn() -> [V; N] + Send + Sync + 'static,
) -> Result<impl Collector + 'static, prometheus::Error> {
    let kinds = series.each_ref().map(|series| series.kind);
    let specs = series.map(|Series { name, help, kind }| FamilySpec { name, help, kind, labels: &[] });
    FamilyCollector::new(specs, move || {
        let mut kinds = kinds.into_iter();
        read().map(|value| {
            let shown = kinds.next().zip(value.into());
            shown.map(|(kind, value)| Series::metric(kind, value)).into_iter().collect()
        })
    })
}
