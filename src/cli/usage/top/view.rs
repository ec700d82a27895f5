//! The content of a page, from the answers of the server.

use std::collections::BTreeMap;

use weir_proto::v1::{
    ConsumerCalls, DeploymentNode, GetUsageResponse, ListNodesResponse, TopConsumersResponse, UsageSeries,
};

use super::super::super::terminal::clean_cell;
use super::WindowArg;

/// The time range of a page, in seconds.
pub(super) const SPAN: i64 = 60;

/// The averaging window of rates, in seconds.
const RECENT: i64 = 10;

/// One page.
#[derive(Debug, Default)]
pub(super) struct UsageView {
    /// Rows sorted by calls, in descending order.
    pub(super) rows: Vec<StrategyRow>,
    /// Costs by name, in the order of strategies, patterns and names.
    pub(super) costs: Vec<CostRow>,
    pub(super) allowed: Vec<ConsumerCalls>,
    pub(super) denied: Vec<ConsumerCalls>,
    /// The window of the consumer counts, as text.
    pub(super) window: &'static str,
    pub(super) nodes: Vec<DeploymentNode>,
    pub(super) incomplete: String,
}

/// One strategy on one resource pattern.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct StrategyRow {
    pub(super) strategy: String,
    pub(super) pattern: String,
    /// Number of calls in the last minute.
    pub(super) calls: u64,
    /// Calls that a limit denied.
    pub(super) denied: u64,
    /// Calls of consumers on a deny list, which is no limit.
    pub(super) listed: u64,
    /// Calls that passed without a charge: peeks, calls of cost 0, and repeated ones.
    pub(super) uncharged: u64,
    /// Calls that a failure policy answered, or that failed.
    pub(super) degraded: u64,
    /// Recent calls per second.
    pub(super) calls_per_s: f64,
    pub(super) denied_per_s: f64,
    pub(super) cost_per_s: f64,
    /// Calls of each second, oldest first.
    pub(super) trend: Vec<u64>,
}

/// The use of one cost under one strategy on one resource pattern.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct CostRow {
    pub(super) strategy: String,
    pub(super) pattern: String,
    pub(super) name: String,
    pub(super) unit: String,
    /// Units of the last minute.
    pub(super) units: u64,
    /// Recent units per second.
    pub(super) per_s: f64,
}

impl UsageView {
    pub(super) fn new(
        usage: GetUsageResponse,
        nodes: ListNodesResponse,
        (allowed, denied): (TopConsumersResponse, TopConsumersResponse),
        window: WindowArg,
    ) -> Self {
        // The last second is incomplete.
        let end = usage.to.map_or(0, |to| to.seconds) - 1;
        let mut rows = BTreeMap::<(String, String), StrategyRow>::new();
        for series in &usage.series {
            let key = (clean_cell(&series.strategy), clean_cell(&series.resource_pattern));
            rows.entry(key).or_insert_with(|| StrategyRow::new(series)).add(series, end);
        }
        let costs = usage.series.iter().flat_map(|series| CostRow::all(series, end)).collect();
        let mut rows: Vec<StrategyRow> = rows.into_values().filter(|row| row.calls > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
        let window = match window {
            WindowArg::Minute => "last minute",
            WindowArg::Hour => "last hour",
        };
        let why = [usage.incomplete, nodes.incomplete, allowed.incomplete, denied.incomplete];
        let incomplete = why.into_iter().find(|why| !why.is_empty()).unwrap_or_default();
        Self {
            rows,
            costs,
            allowed: allowed.consumers,
            denied: denied.consumers,
            window,
            nodes: nodes.nodes,
            incomplete: clean_cell(&incomplete),
        }
    }
}

impl StrategyRow {
    fn new(series: &UsageSeries) -> Self {
        let (strategy, pattern) = names(series);
        Self { strategy, pattern, trend: vec![0; SPAN as usize], ..Self::default() }
    }

    fn add(&mut self, series: &UsageSeries, end: i64) {
        let is_denied = matches!(&*series.outcome, "denied" | "never" | "banned");
        let is_listed = series.outcome == "deny_list";
        let is_uncharged = matches!(&*series.outcome, "peeked" | "repeated");
        let is_degraded = matches!(&*series.outcome, "degraded_allowed" | "degraded_denied" | "error");
        let begin = end - SPAN;
        for point in &series.points {
            let at = point.start.map_or(0, |start| start.seconds);
            let place = usize::try_from(at - begin).ok().filter(|_| at < end);
            let Some(calls) = place.and_then(|place| self.trend.get_mut(place)) else { continue };
            *calls += point.calls;
            self.calls += point.calls;
            self.denied += if is_denied { point.calls } else { 0 };
            self.listed += if is_listed { point.calls } else { 0 };
            self.uncharged += if is_uncharged { point.calls } else { 0 };
            self.degraded += if is_degraded { point.calls } else { 0 };
            if at >= end - RECENT {
                let per_s = |count: u64| count as f64 / RECENT as f64;
                self.calls_per_s += per_s(point.calls);
                self.denied_per_s += if is_denied { per_s(point.calls) } else { 0.0 };
                self.cost_per_s += per_s(point.cost);
            }
        }
    }
}

impl CostRow {
    /// The costs by name of a series that were used in the minute before `end`.
    fn all(series: &UsageSeries, end: i64) -> Vec<Self> {
        let mut rows = BTreeMap::<&str, Self>::new();
        for point in &series.points {
            let at = point.start.map_or(0, |start| start.seconds);
            if !(end - SPAN..end).contains(&at) {
                continue;
            }
            for (name, units) in &point.costs {
                let row = rows.entry(name).or_insert_with(|| {
                    let (strategy, pattern) = names(series);
                    let unit = series.units.get(name).map(|unit| clean_cell(unit)).unwrap_or_default();
                    Self { strategy, pattern, name: clean_cell(name), unit, ..Self::default() }
                });
                row.units = row.units.saturating_add(*units);
                row.per_s += if at >= end - RECENT { *units as f64 / RECENT as f64 } else { 0.0 };
            }
        }
        rows.into_values().collect()
    }
}

/// Strategy and pattern of a series.
fn names(series: &UsageSeries) -> (String, String) {
    let pattern = if series.resource_pattern.is_empty() { "-" } else { &series.resource_pattern };
    (clean_cell(&series.strategy), clean_cell(pattern))
}

/// The cells of a consumer: its name, the strategy, and the estimate of its calls.
pub(super) fn consumer_cells(one: &ConsumerCalls) -> [String; 3] {
    [clean_cell(&one.consumer), clean_cell(&one.strategy), estimate(one)]
}

/// Formats an estimate with its error bound.
fn estimate(one: &ConsumerCalls) -> String {
    let off = one.error.saturating_add(one.sampling_error);
    if off == 0 { one.calls.to_string() } else { format!("{} ±{off}", one.calls) }
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;
    use weir_proto::v1::UsagePoint;

    use super::*;

    #[test]
    fn costs_by_name_have_rows_with_their_units() {
        let point = |seconds, usd| UsagePoint {
            start: Some(Timestamp { seconds, nanos: 0 }),
            costs: [("usd".to_owned(), usd)].into(),
            ..UsagePoint::default()
        };
        let series = UsageSeries {
            strategy: "llm".to_owned(),
            outcome: "allowed".to_owned(),
            points: vec![point(939, 1_000), point(950, 100), point(995, 30), point(1_000, 1_000)],
            units: [("usd".to_owned(), "usd_\u{1b}".to_owned())].into(),
            ..UsageSeries::default()
        };
        let rows = CostRow::all(&series, 1_000);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.units, row.per_s), (130, 3.0));
        assert_eq!([&*row.strategy, &row.pattern, &row.name, &row.unit], ["llm", "-", "usd", "usd_\\u001b"]);
    }

    #[test]
    fn rates_are_those_of_the_last_ten_whole_seconds() {
        let point = |seconds, calls| UsagePoint {
            start: Some(Timestamp { seconds, nanos: 0 }),
            calls,
            cost: 2 * calls,
            ..UsagePoint::default()
        };
        let series = |outcome: &str, points| UsageSeries {
            strategy: "s".to_owned(),
            resource_pattern: "p\u{1b}[2J".to_owned(),
            outcome: outcome.to_owned(),
            points,
            ..UsageSeries::default()
        };
        let usage = GetUsageResponse {
            series: vec![
                series("allowed", vec![point(939, 7), point(940, 1), point(995, 30), point(1_000, 500)]),
                series("denied", vec![point(999, 10)]),
                series("deny_list", vec![point(998, 3)]),
            ],
            to: Some(Timestamp { seconds: 1_001, nanos: 0 }),
            ..GetUsageResponse::default()
        };
        let none = TopConsumersResponse::default();
        let view =
            UsageView::new(usage, ListNodesResponse::default(), (none.clone(), none), WindowArg::Minute);
        let [row] = &view.rows[..] else { panic!("{view:?}") };
        assert_eq!((row.calls, row.denied, row.listed, row.degraded), (44, 10, 3, 0));
        assert_eq!((row.calls_per_s, row.denied_per_s, row.cost_per_s), (4.3, 1.0, 8.6));
        assert_eq!((row.trend[0], row.trend[55], row.trend[59]), (1, 30, 10));
        assert_eq!(row.pattern, "p\\u001b[2J", "no terminal obeys it");
    }
}
