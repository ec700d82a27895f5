//! The engines that the rows are run on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use weir_config::Topology;
use weir_core::algorithm::budget::{
    BudgetVerdict, CostedLimits, NotDecided, ask, debit, debit_once, refund, reset, settle,
};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{Attributes, FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::redis::{RedisShared, RedisStore};
use weir_store::{BudgetDecision, BudgetOp, Store, StoreError};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::BASE;
use super::table::{BudgetStep, BudgetTable};
use super::world::{StepCells, World};
use crate::support::{self, redis_config};

/// Decides a step, or says the gRPC code of its error.
pub trait Engine {
    async fn decide(
        &mut self,
        table: &BudgetTable,
        step: &BudgetStep,
        op: BudgetOp<'_>,
    ) -> Result<BudgetVerdict, &'static str>;
}

impl Engine for World {
    async fn decide(
        &mut self,
        table: &BudgetTable,
        step: &BudgetStep,
        op: BudgetOp<'_>,
    ) -> Result<BudgetVerdict, &'static str> {
        let (now, id) = (Micros(BASE + step.at_us), &step.id);
        decide_pure(&table.budget, self.cells(table, step), (op, id), now).map_err(|error| match error {
            NotDecided::OtherContents => "ALREADY_EXISTS",
            NotDecided::TooManyEnds => "RESOURCE_EXHAUSTED",
            NotDecided::Full(never) => match never {},
        })
    }
}

/// Decides an operation under an id on the pure driver.
pub fn decide_pure(
    budget: &CostedLimits,
    cells: StepCells<'_>,
    (op, id): (BudgetOp<'_>, &str),
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<Infallible>> {
    match op {
        BudgetOp::Ask(asked) => ask(budget, cells, asked, now),
        BudgetOp::Settle(used) => settle(budget, budget.hold.expect("it has holds"), cells, used, now),
        BudgetOp::Debit(used) if id.is_empty() => debit(budget, cells, used, now),
        BudgetOp::Debit(used) => debit_once(budget, cells.of_debits(), used, now),
        BudgetOp::Refund(units, limits) => refund(budget, cells, (units, |index| limits.has(index)), now),
        BudgetOp::Reset(limits) => reset(budget, cells, |index| limits.has(index), now),
    }
}

/// A table on a store whose clock the rows move.
pub struct OnStore<S> {
    store: Arc<S>,
    clock: ManualClock,
    strategy: Arc<Strategy>,
}

/// A store whose keys no other test has.
pub async fn redis(nodes: Vec<String>, topology: Topology, clock: &ManualClock) -> RedisStore {
    let config = redis_config(nodes, topology);
    support::watched(&RedisShared::new(&config, KeySecret::random(), Clock::Manual(clock.clone()))).await
}

impl<S: Store> OnStore<S> {
    pub fn new(store: Arc<S>, clock: ManualClock, table: &BudgetTable) -> Self {
        let field = |name: &String| match &**name {
            "consumer" => Field::Consumer,
            other => Field::Attribute(other.into()),
        };
        let scope = |per: &[String]| Scope::new(&per.iter().map(field).collect::<Vec<_>>());
        let numbers = table.names.iter().zip(&table.per).zip(&table.budget.limits);
        let limits: Vec<Limit> = numbers
            .map(|((name, per), limit)| Limit {
                name: name.as_str().into(),
                scope: scope(per),
                algorithm: limit.algorithm,
            })
            .collect();
        let single_slot = Strategy::new(&table.id, limits.clone(), false, FailurePolicy::Error).is_err();
        let strategy = Strategy::new(&table.id, limits, single_slot, FailurePolicy::Error);
        let strategy = Arc::new(strategy.unwrap_or_else(|error| panic!("{}: {error}", table.id)));
        Self { store, clock, strategy }
    }
}

impl<S: Store> Engine for OnStore<S> {
    async fn decide(
        &mut self,
        table: &BudgetTable,
        step: &BudgetStep,
        op: BudgetOp<'_>,
    ) -> Result<BudgetVerdict, &'static str> {
        self.clock.set(Micros(BASE + step.at_us));
        let attributes: HashMap<String, String> = step.attributes.clone().into_iter().collect();
        let attributes = Attributes::new(&attributes);
        let subject = Subject { resource: "resource", consumer: &step.consumer, group: None, attributes };
        let decision = BudgetDecision {
            strategy: &self.strategy,
            costed: &table.budget,
            subject,
            op,
            id: &step.id,
            deadline: None,
            caller: 0,
        };
        match self.store.decide_costs(&decision).verdicts().await {
            Ok(verdicts) => Ok(*verdicts.budget.expect("a verdict over costs")),
            Err(StoreError::OtherContents) => Err("ALREADY_EXISTS"),
            Err(StoreError::TooManyEnds) => Err("RESOURCE_EXHAUSTED"),
            Err(error) => panic!("{}: {error}", table.id),
        }
    }
}
