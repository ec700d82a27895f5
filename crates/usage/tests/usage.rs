//! Usage of the calls that got through: totals that equal the counts of callers, and the consumers that call most.

mod consumers;
mod former;
mod nodes;
mod outcomes;
mod rights;
mod totals;

use std::collections::BTreeMap;

use weir_proto::v1::GetUsageResponse;

use crate::support::usage::{get, usage_of};

/// Calls and cost by strategy, pattern and outcome.
type Totals = BTreeMap<(String, String, String), (u64, u64)>;

/// The totals of an answer, which are the sums of its points.
fn totals(answer: &GetUsageResponse) -> Totals {
    let total = |series: &weir_proto::v1::UsageSeries| {
        let sum = series.points.iter().fold((0, 0), |sum, point| (sum.0 + point.calls, sum.1 + point.cost));
        assert_eq!(sum, (series.calls, series.cost), "{series:?}");
        ((series.strategy.clone(), series.resource_pattern.clone(), series.outcome.clone()), sum)
    };
    answer.series.iter().map(total).collect()
}

fn key(strategy: &str, pattern: &str, outcome: &str) -> (String, String, String) {
    (strategy.to_owned(), pattern.to_owned(), outcome.to_owned())
}
