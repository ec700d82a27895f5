//! The rows of `tests/vectors/budgets.json` on the pure driver and on every store.

pub mod engines;
mod table;
pub mod world;

use std::sync::Arc;

use serde_json::{Map, Value};
use weir_config::{MemoryConfig, Topology};
use weir_core::algorithm::budget::{Ask, AskedCost, BudgetVerdict, HoldError, SettleOutcome};
use weir_core::key::KeySecret;
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisShared;
use weir_store::{BudgetOp, LimitSet, Store};
use weir_time::clock::{Clock, ManualClock};
use weir_units::{Micros, Retry};

use self::engines::{Engine, OnStore};
use self::table::{BudgetStep, BudgetTable, read_all};
use self::world::World;
use crate::support::{self, Accelerators, redis_config};

/// The origin of a row's `at_us`: 2024-01-01T00:00:00Z.
const BASE: u64 = 1_704_067_200_000_000;

#[tokio::test]
async fn pure() {
    run(|_| World::default()).await;
}

#[tokio::test]
async fn memory() {
    let clock = ManualClock::at(Micros(BASE));
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
    run_on(store, &clock).await;
}

#[tokio::test]
async fn redis() {
    let clock = ManualClock::at(Micros(BASE));
    run_on(engines::redis(vec![support::shared_redis().url()], Topology::Single, &clock).await, &clock).await;
}

#[tokio::test]
async fn cluster() {
    let clock = ManualClock::at(Micros(BASE));
    run_on(engines::redis(support::shared_cluster().urls(), Topology::Cluster, &clock).await, &clock).await;
}

/// With what stands before the store in a service, each on and off.
#[tokio::test]
async fn accelerated_redis() {
    let config = redis_config(vec![support::shared_redis().url()], Topology::Single);
    for accelerators in Accelerators::SETS {
        let clock = ManualClock::at(Micros(BASE));
        let shared = Clock::Manual(clock.clone());
        let config = accelerators.config(config.clone());
        let store = support::watched(&RedisShared::new(&config, KeySecret::random(), shared.clone())).await;
        run_on(accelerators.before(store, &config, &shared), &clock).await;
    }
}

/// Runs every table on a store.
async fn run_on(store: impl Store, clock: &ManualClock) {
    let store = Arc::new(store);
    run(|table| OnStore::new(Arc::clone(&store), clock.clone(), table)).await;
}

/// Runs every table on an engine of its own.
async fn run<E: Engine>(engine: impl Fn(&BudgetTable) -> E) {
    let (mut rows, mut wrong) = (0, Vec::new());
    for table in read_all() {
        let mut engine = engine(&table);
        for (number, step) in table.steps.iter().enumerate() {
            rows += 1;
            let said = said(&table, step, &mut engine).await;
            for (name, want) in &step.expect {
                for (name, got, want) in compared(name, &said, want) {
                    wrong.push(format!("{} row {}: {name} is {got}, not {want}", table.id, number + 1));
                }
            }
        }
    }
    println!("{rows} rows");
    assert!(rows > 200, "{rows}");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// The differences of one expectation; of limits, one for each value.
fn compared(name: &str, said: &Value, want: &Value) -> Vec<(String, Value, Value)> {
    let got = said.get(name).cloned().unwrap_or_default();
    let Some(limits) = want.as_object() else {
        return if got == *want { vec![] } else { vec![(name.to_owned(), got, want.clone())] };
    };
    let mut wrong = Vec::new();
    for (limit, values) in limits {
        let said = got.get(limit).cloned().unwrap_or_default();
        for (key, want) in values.as_object().unwrap() {
            let got = said.get(key).cloned().unwrap_or_default();
            if got != *want {
                wrong.push((format!("{limit}.{key}"), got, want.clone()));
            }
        }
        for key in ["granted", "charged"] {
            let unexpected = said.get(key).is_some_and(|value| !value.is_null()) && values.get(key).is_none();
            if unexpected {
                wrong.push((format!("{limit}.{key}"), said[key].clone(), Value::Null));
            }
        }
    }
    wrong
}

async fn said(table: &BudgetTable, step: &BudgetStep, engine: &mut impl Engine) -> Value {
    match decided(table, step, engine).await {
        Ok(verdict) => answer(table, step, &verdict),
        Err(code) => serde_json::json!({ "error": code }),
    }
}

const INVALID: &str = "INVALID_ARGUMENT";

async fn decided(
    table: &BudgetTable,
    step: &BudgetStep,
    engine: &mut impl Engine,
) -> Result<BudgetVerdict, &'static str> {
    let budget = &table.budget;
    let named: Vec<(&str, AskedCost)> = step.costs.iter().map(|(name, cost)| (&**name, *cost)).collect();
    let plain: Vec<(&str, u64)> = named.iter().map(|(name, asked)| (*name, asked.cost)).collect();
    let has = |index: &usize| step.limits.is_empty() || step.limits.contains(&table.names[*index]);
    let limits = (0..table.names.len()).filter(has).fold(LimitSet::NONE, LimitSet::with);
    let used = || budget.some_costs(&plain, step.cost).map_err(|_| INVALID);
    match &*step.op {
        "check" | "peek" => {
            let asked = Ask {
                costs: budget.costs(&named).map_err(|_| INVALID)?,
                cost: step.cost.unwrap_or(1),
                peek: step.op == "peek",
                has_id: !step.id.is_empty(),
                hold_for: step.hold_for_us.map(Micros),
            };
            budget.check_hold(&asked).map_err(|error| match error {
                HoldError::NoHolds => "FAILED_PRECONDITION",
                _ => INVALID,
            })?;
            engine.decide(table, step, BudgetOp::Ask(&asked)).await
        }
        "settle" => {
            let used = used()?;
            if step.id.is_empty() {
                return Err(INVALID);
            }
            budget.hold.ok_or("FAILED_PRECONDITION")?;
            engine.decide(table, step, BudgetOp::Settle(&used)).await
        }
        "force" => engine.decide(table, step, BudgetOp::Debit(&used()?)).await,
        "refund" => engine.decide(table, step, BudgetOp::Refund(step.cost.unwrap_or(1), limits)).await,
        "reset" => engine.decide(table, step, BudgetOp::Reset(limits)).await,
        "at_most" => Err(INVALID),
        other => panic!("{}: the operation `{other}` is not understood", table.id),
    }
}

/// The answer as the rows write it.
fn answer(table: &BudgetTable, step: &BudgetStep, verdict: &BudgetVerdict) -> Value {
    let us = |retry| match retry {
        Retry::Now => 0,
        Retry::After(wait) => i64::try_from(wait.0).unwrap(),
        Retry::Never => -1,
        Retry::Unknown => panic!("a rate limit knows how long to wait"),
    };
    let enforced = |index: usize| !table.budget.limits[index].algorithm.is_shadow();
    let denied: Vec<&str> = verdict
        .limits
        .iter()
        .enumerate()
        .filter(|(_, limit)| limit.cause.is_some())
        .filter(|(index, _)| enforced(*index))
        .map(|(index, _)| &*table.names[index])
        .collect();
    let limits: Map<String, Value> = verdict.limits.iter().zip(&table.names).map(|(limit, name)| {
        let granted = if step.op == "settle" { None } else { limit.granted };
        let value = serde_json::json!({
            "granted": granted, "charged": limit.charged, "remaining": limit.remaining, "held": limit.held,
            "near_limit": limit.near, "crossed_near_limit": limit.crossed_near,
        });
        (name.clone(), value)
    }).collect();
    let outcome = verdict.outcome.map(|outcome| match outcome {
        SettleOutcome::Settled => "settled",
        SettleOutcome::Late => "late",
        SettleOutcome::Unknown => "unknown",
    });
    serde_json::json!({
        "allowed": verdict.allowed, "fitted": verdict.fitted, "applied": verdict.applied, "denied_by": denied,
        "held_for_us": verdict.held_for.map_or(0, |held| held.0), "outcome": outcome,
        "retry_after_us": us(verdict.retry), "reset_after_us": verdict.reset_after.0, "limits": limits,
    })
}
