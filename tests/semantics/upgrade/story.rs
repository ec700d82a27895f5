//! The questions of a release, step by step, and a store that is asked the same.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use weir_config::Topology;
use weir_core::algorithm::Op;
use weir_core::algorithm::budget::{Ask, CostedLimits, SettledCosts};
use weir_core::key::Subject;
use weir_core::strategy::{Attributes, Strategy};
use weir_leases::model::LeaseOp;
use weir_leases::store::{LeaseAsk, LeaseStore as _};
use weir_queues::model::{ItemId, NewItem, QueueOp, QueuePart, QueueRule};
use weir_queues::store::{QueueAsk, QueueStore as _};
use weir_store::redis::RedisStore;
use weir_store::{BudgetDecision, BudgetOp, Decision, LimitSet, Part, Store as _, Verdicts};
use weir_testing::DecideOne as _;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::answers::{of_costs, of_decision, of_lease, of_queue};
use crate::support::RedisServer;
use crate::support::server::BASE;
use crate::support::stores::redis_store;

/// Steps on keys that nobody else uses. One that a release has been asked never changes; others come beside it.
pub(super) struct Story {
    /// No other story has it.
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
    /// After so many steps the states are written down.
    pub(super) states_after: usize,
    /// The law that its answers must keep, whoever gives them.
    pub(super) law: Option<Law>,
}

/// Questions asked at once, this many microseconds after the step before.
pub(super) struct Step {
    pub(super) after: u64,
    pub(super) acts: Vec<Act>,
}

/// A law of answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Law {
    /// More than this is granted to one consumer within a span.
    AtMost(u64, u64),
    /// Leases hold more than this.
    Held(u64),
    /// An item is lost, or two workers have it.
    Items,
}

/// One call.
pub(super) enum Act {
    Decide { strategy: Arc<Strategy>, consumer: &'static str, id: &'static str, op: Op, cost: u64 },
    Costs { rules: CostsRules, consumer: &'static str, id: &'static str, op: CostsAct },
    Lease { strategy: Arc<Strategy>, consumer: &'static str, tier: &'static str, id: String, op: LeaseOp },
    Queue { rule: Arc<QueueRule>, part: QueuePart, op: QueueAct },
}

/// Limits with costs of their own.
#[derive(Clone)]
pub(super) struct CostsRules {
    pub(super) strategy: Arc<Strategy>,
    pub(super) costed: Arc<CostedLimits>,
}

/// An operation on costs: refunds and resets are of all limits.
pub(super) enum CostsAct {
    Ask(Ask),
    Settle(SettledCosts),
    Debit(SettledCosts),
    Refund(u64),
    Reset,
}

/// An operation on a queue.
pub(super) enum QueueAct {
    /// Ids, which may be empty, and payloads.
    Put(Vec<(String, String)>),
    /// The taker, and the number of items.
    Take(&'static str, usize),
    Ack(Vec<Item>, &'static str),
    Nack(Vec<Item>, Micros),
    Stats,
}

/// An item by its place, counted over and over: the number of items is the answers' affair.
#[derive(Clone, Copy)]
pub(super) enum Item {
    /// Of those that were accepted.
    Accepted(usize),
    /// Of the dead letters that were taken.
    Dead(usize),
}

/// A store of this version on its own clock, and the items that it has heard of.
pub(super) struct World {
    pub(super) clock: ManualClock,
    store: RedisStore,
    accepted: Vec<ItemId>,
    dead: Vec<ItemId>,
}

impl World {
    pub(super) async fn new(redis: &RedisServer) -> Self {
        let clock = ManualClock::at(BASE);
        let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
        Self { clock, store, accepted: Vec::new(), dead: Vec::new() }
    }

    /// Forgets everything: a story begins.
    pub(super) fn begin(&mut self) {
        self.clock.set(BASE);
        self.accepted.clear();
        self.dead.clear();
    }

    pub(super) fn pass(&self, after: u64) {
        self.clock.set(Micros(self.clock.now().0 + after));
    }

    /// Asks all of a step at once, and returns the answers.
    pub(super) async fn ask(&self, step: &Step) -> Json {
        Json::Array(join_all(step.acts.iter().map(|act| self.act(act))).await)
    }

    /// Remembers the items that answers name, whoever has given them.
    pub(super) fn learn(&mut self, step: &Step, answers: &Json) {
        for (act, answer) in step.acts.iter().zip(answers.as_array().unwrap()) {
            let Act::Queue { part, .. } = act else { continue };
            let known = match (answer[0].as_str(), part) {
                (Some("accepted"), _) => &mut self.accepted,
                (Some("taken"), QueuePart::Dead) => &mut self.dead,
                _ => continue,
            };
            for item in answer[2].as_array().unwrap() {
                let id = if item.is_array() { &item[0] } else { item };
                let id = id.as_str().unwrap().parse().unwrap();
                if !known.contains(&id) {
                    known.push(id);
                }
            }
        }
    }

    async fn act(&self, act: &Act) -> Json {
        match act {
            Act::Decide { strategy, consumer, id, op, cost } => {
                let subject = Subject { resource: "zoo/lion", consumer, ..Subject::default() };
                self.decide(strategy, subject, id, *op, *cost).await
            }
            Act::Costs { rules: CostsRules { strategy, costed }, consumer, id, op } => {
                let subject = Subject { resource: "zoo/lion", consumer, ..Subject::default() };
                let op = match op {
                    CostsAct::Ask(asked) => BudgetOp::Ask(asked),
                    CostsAct::Settle(used) => BudgetOp::Settle(used),
                    CostsAct::Debit(used) => BudgetOp::Debit(used),
                    CostsAct::Refund(units) => BudgetOp::Refund(*units, LimitSet::ALL),
                    CostsAct::Reset => BudgetOp::Reset(LimitSet::ALL),
                };
                let decision =
                    BudgetDecision { strategy, costed, subject, op, id, deadline: None, caller: 0 };
                of_costs(self.store.decide_costs(&decision).verdicts().await)
            }
            Act::Lease { strategy, consumer, tier, id, op } => {
                let attributes = [("tier", *tier)];
                let attributes = Attributes::of_pairs(&attributes);
                let subject = Subject { resource: "zoo/lion", consumer, attributes, ..Subject::default() };
                of_lease(self.store.lease(&LeaseAsk { strategy, subject, id, op: *op, deadline: None }).await)
            }
            Act::Queue { rule, part, op } => self.queue(rule, *part, op).await,
        }
    }

    pub(super) async fn decide(
        &self,
        strategy: &Arc<Strategy>,
        subject: Subject<'_>,
        id: &str,
        op: Op,
        cost: u64,
    ) -> Json {
        let part = Part { id, ..Part::ALL };
        let decision = Decision { part: Some(&part), ..Decision::new(strategy, subject, op, &[]) };
        let mut verdicts = Verdicts::default();
        match self.store.decide_one(&decision, op, &[cost], &mut verdicts).await {
            Err(error) => json!(error.to_string()),
            Ok(()) => of_decision(&verdicts),
        }
    }

    async fn queue(&self, rule: &QueueRule, part: QueuePart, act: &QueueAct) -> Json {
        let items: Vec<NewItem<'_>>;
        let mut ids = Vec::new();
        let op = match act {
            QueueAct::Put(puts) => {
                items = puts
                    .iter()
                    .map(|(id, payload)| NewItem { digest: 1, id, payload: payload.as_bytes() })
                    .collect();
                QueueOp::Enqueue { items: &items }
            }
            QueueAct::Take(taker, max_items) => {
                QueueOp::Take { token: 7 << 32 | 7, taker, max_items: *max_items }
            }
            QueueAct::Ack(of, outcome) => {
                ids = self.ids(of);
                QueueOp::Ack { tokens: &[], ids: &ids, outcome }
            }
            QueueAct::Nack(of, delay) => {
                ids = self.ids(of);
                QueueOp::Nack { tokens: &[], ids: &ids, delay: *delay }
            }
            QueueAct::Stats => QueueOp::Stats { outcomes: 10 },
        };
        let answer = self.store.queue(&QueueAsk { rule, part, op, deadline: None }).await;
        of_queue(&ids, answer)
    }

    /// The items, each once.
    fn ids(&self, items: &[Item]) -> Vec<ItemId> {
        let mut ids = Vec::new();
        for item in items {
            let (known, place) = match *item {
                Item::Accepted(place) => (&self.accepted, place),
                Item::Dead(place) => (&self.dead, place),
            };
            let id = known.get(place % known.len().max(1)).copied().unwrap_or(ItemId { ms: 1, seq: 1 });
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }
}
