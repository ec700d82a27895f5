//! The questions of a node for Redis, and their answers.

use std::time::Duration;

use weir_store::redis::RedisStore;
use weir_store::{Answers, BudgetDecision, Decision, Store, StoreAnswer, StoreError, Verdicts, decide_one};

use crate::log::{CounterName, DecidedCost, SimulationEvent, SimulationLog, StoreQuestion};

/// A store in front of Redis that writes down each question and its answer.
pub(super) struct RecordedStore {
    pub(super) store: RedisStore,
    pub(super) node: usize,
    pub(super) log: SimulationLog,
}

impl Store for RecordedStore {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            let counter = CounterName {
                strategy: decision.strategy.name().to_owned(),
                consumer: decision.subject.consumer.to_owned(),
            };
            let costs = decision.costs.to_vec();
            let question = StoreQuestion { node: self.node, counter, op: decision.op, costs };
            let (log, answer) = (self.log.clone(), decide_one(&self.store, decision));
            answers.later(async move {
                log.add(SimulationEvent::Asked(question.clone()));
                let answer = answer.verdicts().await;
                log.add(SimulationEvent::Answered(question, each_cost(&answer)));
                answer
            });
        }
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        self.store.decide_costs(decision)
    }

    fn patience(&self) -> Option<Duration> {
        self.store.patience()
    }
}

fn each_cost(answer: &Result<Verdicts, StoreError>) -> Result<Vec<DecidedCost>, StoreError> {
    let all = answer.as_ref().map_err(Clone::clone)?;
    let each = (0..all.decisions.len()).filter_map(|index| all.get(index));
    Ok(each.map(|(verdict, limits)| DecidedCost { verdict: *verdict, limits: limits.to_vec() }).collect())
}
