//! `/rlconfig`, a line for each limit, and `/stats`, every metric.

use std::fmt::Write as _;

use crate::rules::RateLimit;
use axum::extract::State as Shared;
use axum::http::header;
use prometheus::proto::MetricType;
use serde_json::{Map, Value};
use weir_node::telemetry::Metrics;

use super::ShownRules;

pub(super) const INDEX: &str = "\
/rlconfig  the limits that are served, a line each
/stats     every metric, as JSON
/metrics   Prometheus metrics
";

/// One line per rule, in the order of the files. An unlimited one has no unit, as in the reference.
pub(super) async fn rlconfig(Shared(rules): Shared<ShownRules>) -> String {
    let mut page = String::new();
    let Some(loaded) = rules.current() else { return page };
    for rule in loaded.domains().rules() {
        let limit = rule.limit.as_ref();
        let unit = limit.map_or("unknown", |limit| limit.unit().name());
        let _ = writeln!(
            page,
            "{}: unit={} requests_per_unit={}, shadow_mode: {}, quota_mode: {}",
            rule.path(),
            unit.to_uppercase(),
            limit.map_or(0, RateLimit::requests_per_unit),
            rule.shadow_mode,
            rule.quota_mode
        );
    }
    page
}

/// The value of every metric, under its name and labels. Histograms have their count and sum.
pub(super) async fn stats(
    Shared(metrics): Shared<Metrics>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    let mut all = Map::new();
    for family in metrics.gather() {
        for metric in family.get_metric() {
            let labels =
                metric.get_label().iter().map(|label| format!("{}={:?}", label.name(), label.value()));
            let labels = labels.collect::<Vec<_>>().join(",");
            let name = |suffix: &str| match labels.is_empty() {
                true => format!("{}{suffix}", family.name()),
                false => format!("{}{suffix}{{{labels}}}", family.name()),
            };
            match family.get_field_type() {
                MetricType::HISTOGRAM => {
                    let histogram = metric.get_histogram();
                    all.insert(name("_count"), histogram.get_sample_count().into());
                    all.insert(name("_sum"), histogram.get_sample_sum().into());
                }
                MetricType::COUNTER => drop(all.insert(name(""), metric.get_counter().get_value().into())),
                _ => drop(all.insert(name(""), metric.get_gauge().get_value().into())),
            }
        }
    }
    ([(header::CONTENT_TYPE, "application/json")], Value::Object(all).to_string())
}
