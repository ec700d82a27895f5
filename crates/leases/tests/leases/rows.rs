//! The rows `leases`, `aimd`, `vegas` and `gradient2` of tests/vectors.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use weir_core::strategy::{
    AimdRule, ConcurrencyNumbers, ControllerRule, Gradient2Rule, LimitSource, ProbeRule, Strategy, VegasRule,
};
use weir_leases::model::{LeaseAnswer, LeaseOp, LeaseOutcome, LeaseRefusal, WorkOutcome};
use weir_leases::store::LeaseStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, START};
use crate::support::vectors::{folder, is_of_leases};

/// The largest difference between an estimate and that of a row.
const TOLERANCE: f64 = 1e-9;

weir_testing::on_every_engine!(world, run);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: String,
    algorithm: String,
    config: Value,
    #[serde(rename = "source")]
    _source: String,
    #[serde(default, rename = "note")]
    _note: String,
    tolerance_us: u64,
    steps: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    #[serde(default)]
    at_us: u64,
    op: String,
    #[serde(default)]
    lease: String,
    cost: Option<u64>,
    rtt_us: Option<u64>,
    in_flight: Option<u64>,
    dropped: Option<bool>,
    expect: BTreeMap<String, Value>,
}

async fn run(store: &impl LeaseStore, clock: &ManualClock) {
    let (mut rows, mut wrong) = (0, Vec::new());
    for table in tables() {
        let strategy = strategy(&table);
        for (number, row) in table.steps.iter().enumerate() {
            clock.set(Micros(START + row.at_us));
            let ask = world::ask(&strategy, &row.lease, op(&table, row));
            let answer = store.lease(&ask).await.unwrap_or_else(|error| panic!("{}: {error}", table.id));
            rows += 1;
            for (name, want) in &row.expect {
                let got = observed(&table.id, name, &answer, &ask.op);
                if !agrees(name, &got, want) {
                    wrong.push(format!("{} row {}: {name} is {got}, not {want}", table.id, number + 1));
                }
            }
        }
    }
    assert!(rows > 80, "only {rows} rows were found");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn tables() -> Vec<RawTable> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|file| is_of_leases(file)).collect();
    files.sort();
    let read = |file| -> Vec<RawTable> {
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap_or_else(|e| panic!("{e}"))
    };
    files.into_iter().flat_map(read).collect()
}

fn op(table: &RawTable, row: &RawRow) -> LeaseOp {
    let ttl = || Micros(table.config["ttl_us"].as_u64().unwrap());
    match row.op.as_str() {
        "acquire" => LeaseOp::Acquire { weight: row.cost.unwrap_or(1), ttl: ttl() },
        "renew" => LeaseOp::Renew { ttl: ttl() },
        "release" => LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None },
        "sample" => LeaseOp::Sample {
            rtt: Micros(row.rtt_us.unwrap()),
            in_flight: row.in_flight.unwrap(),
            dropped: row.dropped.unwrap(),
        },
        other => panic!("{}: the operation `{other}` is not understood", table.id),
    }
}

/// Values that a row may expect, by name.
fn observed(table: &str, name: &str, answer: &LeaseAnswer, op: &LeaseOp) -> Value {
    match (name, answer.outcome) {
        ("allowed", outcome) => matches!(outcome, LeaseOutcome::Held { .. }).into(),
        ("released", outcome) => (outcome == LeaseOutcome::Released).into(),
        ("renewed", outcome) => {
            (matches!(op, LeaseOp::Renew { .. }) && matches!(outcome, LeaseOutcome::Held { .. })).into()
        }
        ("limit", _) => answer.limit.into(),
        ("in_flight", _) => answer.in_flight.into(),
        ("remaining", _) => answer.remaining.into(),
        ("estimate", _) => answer.estimate.into(),
        ("retry_after_us", LeaseOutcome::Refused { refusal: LeaseRefusal::Never, .. }) => json!(-1),
        ("retry_after_us", LeaseOutcome::Refused { .. }) => Value::Null,
        ("retry_after_us", _) => 0.into(),
        ("lease_expiry_bound_us", LeaseOutcome::Refused { bound: Some(bound), .. }) => bound.0.into(),
        ("lease_expiry_bound_us", _) => Value::Null,
        (other, _) => panic!("{table}: the expectation `{other}` is not understood"),
    }
}

fn agrees(name: &str, got: &Value, want: &Value) -> bool {
    match (name, got.as_f64(), want.as_f64()) {
        ("estimate", Some(got), Some(want)) => (got - want).abs() <= TOLERANCE * want,
        _ => got == want,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Leases {
    limit: u64,
    #[serde(rename = "ttl_us")]
    _ttl_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Aimd {
    initial: u64,
    min_limit: u64,
    max_limit: u64,
    backoff: f64,
    timeout_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vegas {
    initial: u64,
    max_limit: u64,
    smoothing: f64,
    alpha: Value,
    beta: Value,
    probe: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gradient2 {
    initial: u64,
    min_limit: u64,
    max_limit: u64,
    smoothing: f64,
    queue: f64,
    long_window: f64,
    tolerance: f64,
}

fn strategy(table: &RawTable) -> Arc<Strategy> {
    assert_eq!(table.tolerance_us, 0, "{}: leases are exact", table.id);
    let (range, controller) = match table.algorithm.as_str() {
        "leases" => {
            let Leases { limit, .. } = parse(table);
            return world::strategy(&table.id, world::numbers(limit));
        }
        "aimd" => {
            let Aimd { initial, min_limit, max_limit, backoff, timeout_us } = parse(table);
            let rule = AimdRule { backoff, timeout: Micros(timeout_us) };
            ((initial, min_limit, max_limit), ControllerRule::Aimd(rule))
        }
        "vegas" => {
            let Vegas { initial, max_limit, smoothing, alpha, beta, probe } = parse(table);
            let probe = match (probe.as_str(), probe.strip_prefix("every ")) {
                ("never", _) => ProbeRule::Never,
                (_, Some("4th sample")) => ProbeRule::Every(4.0),
                (other, _) => panic!("{}: the probe `{other}` is not understood", table.id),
            };
            let (alpha, beta) = (digits(&alpha, "3*log10"), digits(&beta, "6*log10"));
            ((initial, 1, max_limit), ControllerRule::Vegas(VegasRule { smoothing, alpha, beta, probe }))
        }
        "gradient2" => {
            let Gradient2 { initial, min_limit, max_limit, smoothing, queue, long_window, tolerance } =
                parse(table);
            let rule = Gradient2Rule { smoothing, queue, long_window, tolerance };
            ((initial, min_limit, max_limit), ControllerRule::Gradient2(rule))
        }
        other => panic!("{}: the algorithm `{other}` is not understood", table.id),
    };
    let source = LimitSource::Adaptive(world::adaptive(range, controller));
    world::strategy(&table.id, ConcurrencyNumbers { source, ..world::numbers(0) })
}

/// A number, or `None` for the formula that Vegas has without one.
fn digits(value: &Value, formula: &str) -> Option<f64> {
    if value == formula { None } else { Some(value.as_f64().unwrap()) }
}

fn parse<T: serde::de::DeserializeOwned>(table: &RawTable) -> T {
    serde_json::from_value(table.config.clone()).unwrap_or_else(|error| panic!("{}: {error}", table.id))
}
