//! Decisions of the store: one call of a key at a time, for all callers of the node.
//!
//! ```text
//!   caller 1   ├── what would exceed the share ──┤
//!   caller 2      ├─────────── waits ────────────┤ the node admits it
//!   caller 3         ├──────── waits ────────────┼── 3, 4: together ──┤
//!   caller 4            ├───── waits ────────────┼────────────────────┤
//! ```
//!
//! While a charge is on its way, the node counts no further (R5). The answer shows that the store has counted all that the node
//! owed, so it admits again, up to its share; what exceeds that goes together, if the costs are the same.

mod batch;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weir_core::approximate::{CountAnswer, CountAsk, CountOp, NodePush};
use weir_core::strategy::Strategy;
use weir_time::deadlines::Passed;
use weir_units::{CEILING, Micros};

use self::batch::{CountBatch, lead};
use super::ApproximateWorker;
use super::line::{CountQuestion, CountWaiter, WaitingVerdict};
use super::moment::NodeMoment;
use super::places::PlaceSet;
use super::table::{KeyEntry, limit_of};
use super::verdict::CountVerdict;
use crate::{CountStore, CounterKey, Decision, StoreError, Verdicts};

/// A decision that may need the store. Owns its data.
pub(super) struct PendingCount<C> {
    worker: Arc<ApproximateWorker<C>>,
    strategy: Arc<Strategy>,
    /// `None` before the node has heard of the places.
    set: Option<Arc<PlaceSet>>,
    key: CounterKey,
    digest: u128,
    op: CountOp,
    cost: u64,
    limit: u64,
    deadline: Instant,
}

enum ChargeStep {
    Decided(CountVerdict),
    /// Waits for a call about its key.
    Waits(WaitingVerdict),
    /// The store decides it alone.
    Alone,
}

impl<C: CountStore> PendingCount<C> {
    pub(super) fn new(
        worker: &Arc<ApproximateWorker<C>>,
        decision: &Decision<'_>,
        (op, cost): (CountOp, u64),
        set: Option<Arc<PlaceSet>>,
        deadline: Instant,
    ) -> Self {
        let table = &worker.node.0.table;
        Self {
            key: worker.counts.counter(decision.strategy, &decision.subject),
            digest: set.as_ref().map_or(0, |set| table.digest(set, decision)),
            worker: Arc::clone(worker),
            strategy: Arc::clone(decision.strategy),
            set,
            op,
            cost,
            limit: limit_of(decision),
            deadline,
        }
    }

    /// Decides. Nothing is sent before the first poll.
    pub(super) async fn decide(self) -> Result<Verdicts, StoreError> {
        match self.worker.deadlines.until(self.deadline, self.run()).await {
            Ok(decided) => Ok(decided?.verdicts(self.op, &self.strategy)),
            Err(Passed) => Err(StoreError::Timeout),
        }
    }

    async fn run(&self) -> Result<CountVerdict, StoreError> {
        if !matches!(self.op, CountOp::Charge | CountOp::AtMost) {
            return self.ask(self.push()).await;
        }
        match self.charge()? {
            ChargeStep::Decided(decided) => Ok(decided),
            ChargeStep::Waits(waiting) => match waiting.await {
                Ok(answered) => answered,
                Err(_) => Err(StoreError::Unavailable("the worker that asked for this key stops".into())),
            },
            ChargeStep::Alone => self.ask(None).await,
        }
    }

    /// Decides a charge on the node, joins the call about its key, or makes one.
    fn charge(&self) -> Result<ChargeStep, StoreError> {
        let Some(set) = &self.set else { return Ok(ChargeStep::Alone) };
        let node = &self.worker.node.0;
        let moment = NodeMoment { now: node.clock.now(), clocks: &node.clocks };
        let mut begun = None;
        let step = node.table.with_new(
            self.digest,
            || self.entry(set, &moment),
            |entry| {
                let Some(window) = moment.window(set, entry.server) else { return Ok(ChargeStep::Alone) };
                let Self { op, cost, limit, .. } = *self;
                if !entry.line.is_in_flight
                    && let Some(decided) = entry.decide(&window, (op, cost, limit), self.digest)
                {
                    return Ok(ChargeStep::Decided(decided));
                }
                let (waiter, waiting) = CountWaiter::new(CountQuestion { op, cost, limit }, self.deadline);
                if entry.line.is_in_flight {
                    entry.line.join(waiter, node.max_waiting)?;
                } else {
                    entry.line.is_in_flight = true;
                    begun = CountBatch::new(vec![waiter]).map(|batch| batch.with_push(Some(entry.charge())));
                }
                Ok(ChargeStep::Waits(waiting))
            },
        );
        if let Some(batch) = begun {
            let (worker, key, set) = (Arc::clone(&self.worker), self.key.clone(), Arc::clone(set));
            tokio::spawn(lead(worker, set, (key, self.digest), batch));
        }
        let step = step.unwrap_or(Ok(ChargeStep::Alone));
        if matches!(step, Ok(ChargeStep::Decided(_))) {
            node.table.count_decided(self.digest, 1);
        }
        step
    }

    /// An entry of the table, if the node may count its key.
    fn entry(&self, set: &Arc<PlaceSet>, moment: &NodeMoment<'_>) -> Option<KeyEntry> {
        let server = self.worker.counts.server_of(&self.key)?;
        moment.window(set, server)?;
        Some(KeyEntry::new(set, self.key.clone(), server))
    }

    /// Returns the units that the node owes of the key, if it may count it.
    fn push(&self) -> Option<NodePush> {
        let set = self.set.as_ref()?;
        let node = &self.worker.node.0;
        let moment = NodeMoment { now: node.clock.now(), clocks: &node.clocks };
        let pushed = |entry: &mut KeyEntry| Some(entry.push(&moment.window(set, entry.server)?));
        node.table.with_new(self.digest, || self.entry(set, &moment), pushed).flatten()
    }

    /// Asks the store about this decision alone.
    async fn ask(&self, push: Option<NodePush>) -> Result<CountVerdict, StoreError> {
        let Some(rule) = self.strategy.approximate() else {
            return Err(StoreError::Unsupported("its nodes do not count it"));
        };
        let Self { op, cost, limit, .. } = *self;
        let most = self.strategy.algorithms().first().map_or(0, |limit| limit.debited(0, CEILING));
        let ask = CountAsk { push, op, cost, times: 1, limit, share: rule.bound.share(), most };
        let (node, window) = (&self.worker.node.0, rule.bound.window());
        let sent = node.clock.now();
        let answer = self.worker.counts.count(&self.key, window, ask, Some(self.deadline)).await?;
        self.worker.learn(&self.key, self.digest, (push, answer), sent, self.set.as_deref());
        node.table.central.fetch_add(1, Relaxed);
        Ok(CountVerdict::of_store(&answer, (op, cost, limit), 0, window))
    }
}

impl<C: CountStore> ApproximateWorker<C> {
    /// Takes in an answer to what was sent at `sent`.
    fn learn(
        &self,
        key: &CounterKey,
        digest: u128,
        (push, answer): (Option<NodePush>, CountAnswer),
        sent: Micros,
        set: Option<&PlaceSet>,
    ) {
        let node = &self.node.0;
        let server = self.counts.server_of(key);
        if let Some(server) = server {
            node.clocks.learn(server, answer.now, sent, node.clock.now());
        }
        if let Some(set) = set {
            set.over.fetch_max(answer.over, Relaxed);
        }
        if let Some(push) = push {
            node.table.with(digest, |entry| {
                entry.count.learn(push, answer);
                entry.server = server.unwrap_or(entry.server);
            });
        }
    }
}
