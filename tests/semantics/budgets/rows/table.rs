//! `tests/vectors/budgets.json`, read strictly.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use weir_core::algorithm::budget::{AskedCost, BudgetLimit, CostedLimits, HoldBounds, LimitCost};
use weir_units::Micros;

use crate::vectors::algorithms::algorithm;
use crate::vectors::files::folder;

/// Limits with their costs, and the steps on them.
pub struct BudgetTable {
    pub id: String,
    pub names: Vec<String>,
    /// By limit, the fields that it counts by.
    pub per: Vec<Vec<String>>,
    pub budget: Arc<CostedLimits>,
    pub steps: Vec<BudgetStep>,
}

/// One step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetStep {
    pub at_us: u64,
    pub op: String,
    pub consumer: String,
    pub attributes: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "costs")]
    pub costs: BTreeMap<String, AskedCost>,
    pub cost: Option<u64>,
    #[serde(default)]
    pub id: String,
    pub hold_for_us: Option<u64>,
    #[serde(default)]
    pub limits: Vec<String>,
    pub expect: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: String,
    algorithm: String,
    config: RawConfig,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "note")]
    _note: String,
    tolerance_us: u64,
    steps: Vec<BudgetStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    limits: Vec<RawLimit>,
    hold: Option<RawHold>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHold {
    max_us: u64,
    known_for_us: Option<u64>,
}

#[derive(Deserialize)]
struct RawLimit {
    name: String,
    per: Vec<String>,
    algorithm: String,
    cost: Option<Value>,
    charge: Option<String>,
    mode: Option<String>,
    max_debt: Option<u64>,
    near_limit_percent: Option<u8>,
    #[serde(flatten)]
    numbers: Map<String, Value>,
}

/// All tables.
pub fn read_all() -> Vec<BudgetTable> {
    let text = std::fs::read_to_string(folder().join("budgets.json")).unwrap();
    let raw: Vec<RawTable> = serde_json::from_str(&text).unwrap();
    raw.into_iter().map(RawTable::table).collect()
}

impl RawTable {
    fn table(self) -> BudgetTable {
        assert_eq!((&*self.algorithm, self.tolerance_us), ("budget", 0), "{}", self.id);
        let mut names = Vec::<Box<str>>::new();
        let limits = self.config.limits.iter().map(|limit| limit.limit(&self.id, &mut names)).collect();
        let known_for = |hold: &RawHold| Micros(hold.known_for_us.unwrap_or(3_600_000_000));
        let bounds = |hold: &RawHold| HoldBounds { max: Micros(hold.max_us), known_for: known_for(hold) };
        let hold = self.config.hold.as_ref().map(bounds);
        BudgetTable {
            budget: Arc::new(CostedLimits { limits, names, hold }),
            names: self.config.limits.iter().map(|limit| limit.name.clone()).collect(),
            per: self.config.limits.into_iter().map(|limit| limit.per).collect(),
            id: self.id,
            steps: self.steps,
        }
    }
}

impl RawLimit {
    fn limit(&self, id: &str, names: &mut Vec<Box<str>>) -> BudgetLimit {
        let algorithm = algorithm(id, &self.algorithm, Value::Object(self.numbers.clone()));
        let algorithm = algorithm.with_max_debt(Some(self.max_debt.unwrap_or(algorithm.limit())));
        let cost = match &self.cost {
            None => LimitCost::Request,
            Some(Value::String(name)) => LimitCost::Named(position(names, name)),
            Some(units) => LimitCost::Fixed(units.as_u64().unwrap()),
        };
        BudgetLimit {
            algorithm: if self.mode.as_deref() == Some("shadow") { algorithm.in_shadow() } else { algorithm },
            cost,
            at_once: self.charge.as_deref() == Some("at_once"),
            near_percent: self.near_limit_percent,
        }
    }
}

fn position(names: &mut Vec<Box<str>>, name: &str) -> usize {
    names.iter().position(|known| **known == *name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    })
}

fn costs<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, AskedCost>, D::Error> {
    let raw = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let asked = |value: &Value| match value.as_u64() {
        Some(cost) => AskedCost { cost, at_least: None },
        None => AskedCost { cost: value["cost"].as_u64().unwrap(), at_least: value["at_least"].as_u64() },
    };
    Ok(raw.iter().map(|(name, value)| (name.clone(), asked(value))).collect())
}
