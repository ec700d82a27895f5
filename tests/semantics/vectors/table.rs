//! The files of `tests/vectors/`, read strictly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use weir::algorithm::{Algorithm, Op, Rate};
use weir::strategy::{FailurePolicy, Field, Limit, Rules, Scope, Strategy};
use weir::units::Micros;

use super::access;
use super::files::{folder, is_of_leases};

/// One table: limits, and rows in order of time of their making.
pub struct Table {
    pub id: String,
    /// Whether `denied_by` names the causes of its only limit: `count`, `min_gap`.
    pub names_causes: bool,
    pub strategy: Arc<Strategy>,
    /// By how much a time may differ: of floats that another language has computed.
    pub tolerance_us: u64,
    /// Where the limiter decides and not the strategy alone.
    pub rules: Option<Rules>,
    pub rows: Vec<Row>,
}

/// One step.
#[derive(Clone)]
pub struct Row {
    pub at_us: u64,
    pub op: Op,
    pub cost: u64,
    pub resource: String,
    pub consumer: String,
    /// Under which it happens once; empty: each time.
    pub id: String,
    pub expect: BTreeMap<String, Value>,
}

/// Every table of the folder.
pub fn read_all() -> Vec<Table> {
    let folder = folder();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json") && !is_of_leases(file));
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

fn read(file: &Path) -> Vec<Table> {
    let text = std::fs::read_to_string(file).unwrap();
    let raw: Vec<RawTable> =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    raw.into_iter().flat_map(RawTable::tables).collect()
}

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

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    at_us: u64,
    op: String,
    #[serde(default = "one")]
    cost: u64,
    max_wait_us: Option<u64>,
    /// Of a changed limit, which is another one here.
    permits_per_s: Option<f64>,
    id: Option<String>,
    resource: Option<String>,
    consumer: Option<String>,
    expect: BTreeMap<String, Value>,
}

impl RawTable {
    fn tables(self) -> Vec<Table> {
        let is_exact = self.algorithm != "guava_warmup";
        assert!(self.tolerance_us == 0 || !is_exact, "{}: these engines are exact", self.id);
        if self.algorithm != "access" {
            return vec![self.table()];
        }
        assert!(self.steps.iter().all(|row| row.op == "check"), "{}: the limiter checks only", self.id);
        let table = |(strategy, rules): (Arc<Strategy>, Rules)| {
            let rows = self.steps.iter().map(|row| row.clone().row(&self.id, 0)).collect();
            Table {
                id: strategy.name().to_owned(),
                names_causes: false,
                strategy,
                tolerance_us: 0,
                rules: Some(rules),
                rows,
            }
        };
        access::rules(&self.id, self.config).map(table).into()
    }

    fn table(self) -> Table {
        let names_causes = self.algorithm == "strict_log";
        // Cycles have one wait for all.
        let timeout = self.config.get("timeout_us").and_then(Value::as_u64);
        let mut steps = self.steps;
        // Guava's limiter changes on the way; a limit that was changed here keeps the share of what it has stored and
        // its debt, but has another configuration.
        if let Some(changed) = steps.iter().position(|row| row.op == "set_rate") {
            assert!(steps[changed].permits_per_s.is_some(), "{}: to which rate?", self.id);
            steps.truncate(changed);
        }
        for row in &mut steps {
            if row.op == "acquire" {
                (row.op, row.max_wait_us) = ("reserve".to_owned(), Some(3_600_000_000));
            }
            if row.op == "reserve" {
                row.max_wait_us = row.max_wait_us.or(timeout);
            }
        }
        let limits: Vec<Limit> = if matches!(self.algorithm.as_str(), "composite" | "at_most") {
            let config: Composite = parse(&self.id, self.config);
            config.limits.into_iter().map(|limit| limit.limit(&self.id)).collect()
        } else {
            let algorithm = algorithm(&self.id, &self.algorithm, self.config);
            vec![Limit { name: "limit".into(), scope: scope(&self.id, "both"), algorithm }]
        };
        let single_slot = Strategy::new(&self.id, limits.clone(), false, FailurePolicy::Error).is_err();
        let strategy = Strategy::new(&self.id, limits, single_slot, FailurePolicy::Error);
        let strategy = Arc::new(strategy.unwrap_or_else(|e| panic!("{}: {e}", self.id)));
        let rows = steps.into_iter().enumerate().map(|(number, row)| row.row(&self.id, number)).collect();
        Table { id: self.id, names_causes, strategy, tolerance_us: self.tolerance_us, rules: None, rows }
    }
}

impl RawRow {
    fn row(self, id: &str, number: usize) -> Row {
        let op = match (self.op.as_str(), self.max_wait_us) {
            ("check", None) => Op::Charge,
            ("peek", None) => Op::Peek,
            ("refund", None) => Op::Refund,
            ("reset", None) => Op::Reset,
            ("force", None) => Op::Force,
            ("at_most", None) => Op::AtMost,
            ("cancel", None) => Op::Cancel,
            ("reserve", Some(max_wait)) => Op::Reserve { max_wait: Micros(max_wait) },
            (other, _) => panic!("{id}: the operation `{other}` is not understood"),
        };
        let resource = self.resource.unwrap_or_else(|| "resource".to_owned());
        let consumer = self.consumer.unwrap_or_else(|| "consumer".to_owned());
        // A reservation has an id, if need be one of its own.
        let own = || if self.op == "reserve" { format!("row {number}") } else { String::new() };
        let id = self.id.unwrap_or_else(own);
        Row { at_us: self.at_us, op, cost: self.cost, resource, consumer, id, expect: self.expect }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Composite {
    limits: Vec<RawLimit>,
}

#[derive(Deserialize)]
struct RawLimit {
    name: String,
    /// One subject, where nothing is said.
    #[serde(default = "both")]
    per: String,
    algorithm: String,
    #[serde(flatten)]
    numbers: serde_json::Map<String, Value>,
}

impl RawLimit {
    fn limit(self, id: &str) -> Limit {
        let algorithm = algorithm(id, &self.algorithm, Value::Object(self.numbers));
        Limit { name: self.name.as_str().into(), scope: scope(id, &self.per), algorithm }
    }
}

fn scope(id: &str, per: &str) -> Scope {
    Scope::of(match per {
        "resource" => &[Field::Resource],
        "consumer" => &[Field::Consumer],
        "both" => &[Field::Resource, Field::Consumer],
        "global" => &[],
        other => panic!("{id}: the scope `{other}` is not understood"),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gate {
    interval_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bucket {
    burst: u64,
    rate: u64,
    period_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    burst: u64,
    rate: u64,
    period_us: u64,
    #[serde(default)]
    delay_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeAfter {
    burst: u64,
    rate: u64,
    period_us: u64,
    max_cost: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WarmUp {
    permits_per_s: u64,
    warmup_us: u64,
    cold_factor: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cycles {
    limit: u64,
    period_us: u64,
    #[serde(default, rename = "timeout_us")]
    _timeout_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Interval {
    capacity: u64,
    refill: u64,
    period_us: u64,
    #[serde(default)]
    aligned: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Calendar {
    limit: u64,
    calendar: String,
    offset_minutes: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    limit: u64,
    window_us: u64,
    #[serde(default)]
    anchored: bool,
    #[serde(default)]
    spread: bool,
    #[serde(default)]
    count_denied: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    limit: u64,
    window_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Buckets {
    limit: u64,
    window_us: u64,
    buckets: u64,
    strict: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrictLog {
    limit: u64,
    window_us: u64,
    #[serde(default)]
    min_gap_us: u64,
    #[serde(default = "yes")]
    count_denied: bool,
}

fn algorithm(id: &str, name: &str, config: Value) -> Algorithm {
    let made = match name {
        "uniform_gate" => {
            let Gate { interval_us } = parse(id, config);
            Algorithm::uniform(Micros(interval_us))
        }
        "bucket" | "reserve" => {
            let Bucket { burst, rate, period_us } = parse(id, config);
            Algorithm::bucket(burst, Rate { count: rate, period: Micros(period_us) })
        }
        "leaky_queue" => {
            let Queue { burst, rate, period_us, delay_tokens } = parse(id, config);
            Algorithm::leaky_queue(burst, Rate { count: rate, period: Micros(period_us) }, delay_tokens)
        }
        "charge_after" => {
            let ChargeAfter { burst, rate, period_us, max_cost } = parse(id, config);
            Algorithm::charge_after(burst, Rate { count: rate, period: Micros(period_us) }, max_cost)
        }
        "cycles" | "reserve_interval" => {
            let Cycles { limit, period_us, .. } = parse(id, config);
            Algorithm::interval_refill(limit, limit, Micros(period_us), true)
        }
        "guava_warmup" => {
            let WarmUp { permits_per_s, warmup_us, cold_factor } = parse(id, config);
            let rate = Rate { count: permits_per_s, period: Micros::from_secs(1) };
            Algorithm::warm_up(rate, Micros(warmup_us), cold_factor, None)
        }
        "interval_bucket" => {
            let Interval { capacity, refill, period_us, aligned } = parse(id, config);
            Algorithm::interval_refill(capacity, refill, Micros(period_us), aligned)
        }
        "fixed_window" => {
            let Window { limit, window_us, anchored, spread, count_denied } = parse(id, config);
            match (spread, anchored) {
                (true, false) => Algorithm::spread_window(limit, Micros(window_us), count_denied),
                (true, true) => panic!("{id}: an anchored window cannot be spread"),
                (false, _) => Algorithm::fixed_window(limit, Micros(window_us), anchored, count_denied),
            }
        }
        "sliding_log" => {
            let Log { limit, window_us } = parse(id, config);
            Algorithm::sliding_log(limit, Micros(window_us))
        }
        "held_log" => {
            let Log { limit, window_us } = parse(id, config);
            Algorithm::held_log(limit, Micros(window_us))
        }
        "calendar_window" => {
            let Calendar { limit, calendar, offset_minutes } = parse(id, config);
            let calendar = match calendar.as_str() {
                "day" => weir::algorithm::Calendar::Day,
                "month" => weir::algorithm::Calendar::Month,
                other => panic!("{id}: the calendar `{other}` is not understood"),
            };
            Algorithm::calendar_window(limit, calendar, offset_minutes, false)
        }
        "sliding_counter" => {
            let Log { limit, window_us } = parse(id, config);
            Algorithm::sliding_window(limit, Micros(window_us))
        }
        "bucketed_window" => {
            let Buckets { limit, window_us, buckets, strict } = parse(id, config);
            Algorithm::bucketed_window(limit, Micros(window_us), buckets, strict)
        }
        "strict_log" => {
            let StrictLog { limit, window_us, min_gap_us, count_denied } = parse(id, config);
            Algorithm::strict_log(limit, Micros(window_us), count_denied, Micros(min_gap_us))
        }
        other => panic!("{id}: the algorithm `{other}` is not understood"),
    };
    made.unwrap_or_else(|e| panic!("{id}: {e}"))
}

fn parse<T: serde::de::DeserializeOwned>(id: &str, config: Value) -> T {
    serde_json::from_value(config).unwrap_or_else(|e| panic!("{id}: config: {e}"))
}

fn both() -> String {
    "both".to_owned()
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}
