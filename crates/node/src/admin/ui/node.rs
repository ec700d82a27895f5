//! Numbers of this node for the `/ui` page: which limit denies, permits, holds, rejected requests, the
//! breakers of the Redis nodes, the cards of features. The numbers are those of the metrics page.

use prometheus::proto::{Metric, MetricFamily};
use serde_json::{Map, Value, json};

use crate::access::Rights;
use crate::card::{CardColumn, CardSpec};
use crate::telemetry::{LimitUnit, Metrics, rejected_by_kind};

const ROWS: usize = 50;

pub(super) fn state(metrics: &Metrics, cards: &[&CardSpec], rights: Rights<'_>) -> Map<String, Value> {
    let families = metrics.gather();
    let strategy = |one: &Metric| rights.may_show(&label(one, "strategy"), None, None);
    let value = |name: &str, of: &Metric, by: &str| value(&families, name, by, &label(of, by));
    let mut limits: Vec<&Metric> = all(&families, "weir_denials_total").filter(|one| strategy(one)).collect();
    limits.retain(|one| number(one) > 0.0);
    limits.sort_by(|one, other| number(other).total_cmp(&number(one)));
    let limits = limits.into_iter().take(ROWS).map(|one| {
        json!({ "strategy": label(one, "strategy"), "limit": label(one, "limit"), "denials": number(one) })
    });
    let permits = all(&families, "weir_permits_held").filter(|one| strategy(one)).take(ROWS).map(|one| {
        let of = |name| value(name, one, "strategy");
        json!({
            "strategy": label(one, "strategy"),
            "held": number(one),
            "limit": of("weir_permits_limit"),
            "keys": of("weir_permits_keys"),
        })
    });
    let held = |strategy: &str, limit: &str| {
        let is_its = |one: &&Metric| label(one, "strategy") == strategy && label(one, "limit") == limit;
        all(&families, "weir_held_units").find(is_its).map(number)
    };
    let names = metrics.names();
    let costs = names.limits_with_costs().filter(|(strategy, _)| rights.may_show(strategy, None, None));
    let costs = costs.take(ROWS).map(|(strategy, LimitUnit { limit, cost, unit })| {
        json!({
            "strategy": strategy, "limit": limit, "cost": cost, "unit": &**unit,
            // Null: it holds nothing, ever.
            "held": held(strategy, limit),
        })
    });
    let breakers = all(&families, "weir_store_breaker_open").take(ROWS).map(|one| {
        let of = |name| value(name, one, "node");
        json!({
            "node": label(one, "node"),
            "open": number(one) > 0.0,
            "opened": of("weir_store_breaker_opened_total"),
            "up": of("weir_store_node_up") > 0.0,
        })
    });
    let rejected = rejected_by_kind().map(|(kind, count)| json!({ "kind": kind, "count": count }));
    Map::from_iter([
        ("limits".to_owned(), limits.collect()),
        ("permits".to_owned(), permits.collect()),
        ("costs".to_owned(), costs.collect()),
        ("cards".to_owned(), cards.iter().map(|spec| card(spec, &families, rights)).collect()),
        ("breakers".to_owned(), breakers.collect()),
        ("rejected".to_owned(), rejected.into_iter().collect()),
    ])
}

/// A card of a feature: its texts, the forms of its columns, and the rows that the caller may see.
fn card(spec: &CardSpec, families: &[MetricFamily], rights: Rights<'_>) -> Value {
    let CardSpec { title, about, label: by, columns, may_show } = spec;
    let first = columns.first().map_or("", |column| column.metric);
    let names = all(families, first).map(|one| label(one, by)).filter(|name| may_show(rights, name));
    let row = |name: String| {
        let values = columns.iter().map(|column| json!(value(families, column.metric, by, &name)));
        std::iter::once(json!(name)).chain(values).collect::<Value>()
    };
    let rows: Vec<Value> = names.take(ROWS).map(row).collect();
    let column = |column: &CardColumn| {
        let CardColumn { heading, form, is_wide, .. } = column;
        json!({ "heading": heading, "form": form.name(), "wide": is_wide })
    };
    let columns: Vec<Value> = columns.iter().map(column).collect();
    json!({ "title": title, "about": about, "label": by, "columns": columns, "rows": rows })
}

fn all<'f>(families: &'f [MetricFamily], name: &str) -> impl Iterator<Item = &'f Metric> {
    let family = families.iter().find(|family| family.name() == name);
    family.into_iter().flat_map(|family| family.get_metric())
}

fn value(families: &[MetricFamily], name: &str, by: &str, labelled: &str) -> f64 {
    all(families, name).find(|one| label(one, by) == labelled).map_or(0.0, number)
}

fn label(metric: &Metric, name: &str) -> String {
    let pair = metric.get_label().iter().find(|pair| pair.name() == name);
    pair.map_or_else(String::new, |pair| pair.value().to_owned())
}

/// The value of a counter or of a gauge: the other one is 0.
fn number(metric: &Metric) -> f64 {
    metric.get_counter().get_value() + metric.get_gauge().get_value()
}
