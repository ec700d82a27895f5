//! The rows `bounded_sync` of tests/vectors, on the pure counters and on a real Redis. The nodes have held their places since
//! before the window.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_core::approximate::{
    ApproximateBound, CountAnswer, CountAsk, CountOp, LocalAnswer, LocalWindow, NodeCount, SharedCount,
};
use weir_units::{Micros, Retry};

use super::scripts::CountScript;
use crate::support::shared_redis;
use crate::vectors::files::folder;

/// The origin of a row's `at_us`: 2024-01-01T00:00:00Z.
const BASE: u64 = 1_704_067_200_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundedTable {
    id: String,
    #[serde(rename = "algorithm")]
    _algorithm: String,
    config: BoundedNumbers,
    #[serde(rename = "source")]
    _source: String,
    #[serde(default, rename = "note")]
    _note: String,
    #[serde(rename = "tolerance_us")]
    _tolerance_us: u64,
    steps: Vec<BoundedRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundedNumbers {
    limit: u64,
    window_us: u64,
    nodes: Vec<String>,
    max_over: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundedRow {
    at_us: u64,
    op: String,
    node: String,
    #[serde(default)]
    cost: u64,
    expect: BoundedAnswer,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BoundedAnswer {
    allowed: Option<bool>,
    limit: Option<u64>,
    remaining: Option<u64>,
    central: Option<bool>,
    retry_after_us: Option<i64>,
    global: Option<u64>,
    over_by: Option<u64>,
}

#[test]
fn pure() {
    let mut shared = SharedCount::default();
    run(|_, length, ask, now| shared.answer(ask, now, length));
}

#[tokio::test]
async fn redis() {
    let redis = shared_redis();
    let mut script = CountScript::on(redis);
    run(|table, length, ask, now| script.answer(&format!("{{rows}}:{table}"), length, ask, now));
}

fn run(mut answer: impl FnMut(&str, Micros, CountAsk, Micros) -> CountAnswer) {
    let text = std::fs::read_to_string(folder().join("bounded_sync.json")).unwrap();
    let tables: Vec<BoundedTable> = serde_json::from_str(&text).unwrap();
    assert!(tables.len() >= 2);
    for BoundedTable { id, config, steps, .. } in tables {
        let length = Micros(config.window_us);
        let bound = ApproximateBound::new(config.max_over, config.nodes.len() as u64, length).unwrap();
        bound.check(config.limit).unwrap();
        let mut nodes: BTreeMap<&str, NodeCount> = BTreeMap::new();
        for (number, row) in steps.iter().enumerate() {
            let place = config.nodes.iter().position(|name| *name == row.node).unwrap() as u64;
            let node = nodes.entry(&row.node).or_default();
            let ask = |ask: CountAsk| answer(&id, length, ask, Micros(BASE + row.at_us));
            let found = step(row, &bound, config.limit, (node, place), ask);
            assert_eq!(found, row.expect, "{id}, step {number}");
        }
    }
}

fn step(
    row: &BoundedRow,
    bound: &ApproximateBound,
    limit: u64,
    (node, place): (&mut NodeCount, u64),
    mut answer: impl FnMut(CountAsk) -> CountAnswer,
) -> BoundedAnswer {
    let (now, length, share) = (Micros(BASE + row.at_us), bound.window(), bound.share());
    let window = now.0 / length.0;
    let ends = Micros((window + 1) * length.0);
    let local = LocalWindow { window, place, incarnation: 1, begins_at_store: false };
    if row.op == "sync" {
        node.enter(local);
        let push = node.push(place);
        let found = answer(CountAsk::of_push(push, limit));
        node.learn(push, found);
        let over_by = Some(found.count.saturating_sub(limit));
        return BoundedAnswer { global: Some(found.count), over_by, ..BoundedAnswer::default() };
    }
    assert_eq!(row.op, "check");
    let (allowed, remaining, central, retry) = match node.decide(local, (row.cost, limit, share), now, ends) {
        LocalAnswer::Allowed { used } => (true, limit - used - row.cost, false, Retry::Now),
        LocalAnswer::Denied { used, retry } => (false, limit.saturating_sub(used), false, retry),
        LocalAnswer::Central => {
            let push = node.charge(place);
            let ask =
                CountAsk { op: CountOp::Charge, cost: row.cost, share, ..CountAsk::of_push(push, limit) };
            let found = answer(ask);
            node.learn(push, found);
            let retry = if found.passed == 1 { Retry::Now } else { Retry::After(Micros(ends.0 - now.0)) };
            (found.passed == 1, limit.saturating_sub(found.count), true, retry)
        }
    };
    let retry_after_us = match retry {
        Retry::Now => 0,
        Retry::After(wait) => wait.0 as i64,
        Retry::Unknown | Retry::Never => -1,
    };
    BoundedAnswer {
        allowed: Some(allowed),
        limit: Some(limit),
        remaining: Some(remaining),
        central: Some(central),
        retry_after_us: Some(retry_after_us),
        ..BoundedAnswer::default()
    }
}
