//! The files of `tests/vectors/`, read strictly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use weir_core::algorithm::{Engine, Op};
use weir_core::strategy::{FailurePolicy, Field, Limit, Rules, Scope, Strategy};
use weir_units::Micros;

use super::access;
use super::algorithms::algorithm;
use super::files::{folder, is_of_budgets, is_of_leases, is_of_nodes, is_of_queues};

/// One table: limits, and rows in order of time of their making.
pub struct Table {
    pub id: String,
    /// True if `denied_by` names the causes of the only limit: `count`, `min_gap`.
    pub names_causes: bool,
    pub strategy: Arc<Strategy>,
    /// By how much a time may differ: of floats that another language has computed.
    pub tolerance_us: u64,
    /// The rules of a table that the limiter decides, and not the strategy alone.
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
    let is_other =
        |file: &Path| is_of_budgets(file) || is_of_leases(file) || is_of_nodes(file) || is_of_queues(file);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json") && !is_other(file));
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
    /// Of `count`.
    interval_us: Option<u64>,
    /// The answer of the source, which is not compared.
    #[serde(default, rename = "redback_original")]
    _redback_original: u64,
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
        let width = match strategy.algorithms() {
            [one] => match one.engine() {
                Engine::Slots(slots) => slots.width(),
                _ => 1,
            },
            _ => 1,
        };
        let rows = steps
            .into_iter()
            .enumerate()
            .map(|(number, row)| row.counting(width).row(&self.id, number))
            .collect();
        Table { id: self.id, names_causes, strategy, tolerance_us: self.tolerance_us, rules: None, rows }
    }
}

impl RawRow {
    /// With an interval in parts of this width, and a charge under its other name.
    fn counting(mut self, width: u64) -> Self {
        if self.op == "add" {
            self.op = "check".to_owned();
        }
        self.interval_us = self.interval_us.map(|interval| interval / width + 1);
        self
    }

    fn row(self, id: &str, number: usize) -> Row {
        let op = match (self.op.as_str(), self.max_wait_us) {
            ("count", None) => Op::Count { parts: self.interval_us.expect("count has an interval") },
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
    Scope::new(match per {
        "resource" => &[Field::Resource],
        "consumer" => &[Field::Consumer],
        "both" => &[Field::Resource, Field::Consumer],
        "global" => &[],
        other => panic!("{id}: the scope `{other}` is not understood"),
    })
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(id: &str, config: Value) -> T {
    serde_json::from_value(config).unwrap_or_else(|e| panic!("{id}: config: {e}"))
}

fn both() -> String {
    "both".to_owned()
}

fn one() -> u64 {
    1
}
