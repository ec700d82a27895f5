//! Strategies whose nodes take chunks of a limit.
//!
//! ```text
//!   worker ── spends the chunk of the key, which all workers share ──► entry.rs
//!      └───── asks the store for the call and a chunk, one call of a key at a time ──► flight.rs
//!   background ── gives back what is left of old chunks ──► give_back.rs
//! ```
//!
//! What a chunk cannot decide is decided by the exact store as under any strategy: all calls of a node without a place, those of
//! keys beyond the table, and all but charges.

mod entry;
mod flight;
mod give_back;

use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use smallvec::smallvec;
use weir_core::algorithm::{Algorithm, Op};
use weir_core::approximate::{ChunkOp, ChunkTerms, ChunkVerdict};
use weir_core::strategy::Strategy;
use weir_time::clock::monotonic;
use weir_time::deadlines::Passed;
use weir_units::Micros;

pub(super) use self::entry::ChunkEntry;
use self::entry::{ChunkQuestion, ChunkWaiter};
use self::flight::{ChunkBatch, lead};
use super::line::WaitingVerdict;
use super::places::PlaceSet;
use super::{ApproximateNode, ApproximateWorker};
use crate::{Answers, CountStore, CounterKey, Decision, Store, StoreAnswer, StoreError, Verdicts};

/// A charge that may need the store. Owns its data.
struct PendingChunk<C> {
    worker: Arc<ApproximateWorker<C>>,
    strategy: Arc<Strategy>,
    set: Arc<PlaceSet>,
    key: CounterKey,
    digest: u128,
    op: ChunkOp,
    cost: u64,
    deadline: Instant,
}

/// What becomes of a charge.
enum ChunkStep {
    Decided(ChunkVerdict),
    /// It waits for a call about its key.
    Waits(WaitingVerdict<ChunkVerdict>),
}

impl<C: CountStore> ApproximateWorker<C> {
    /// Decides with chunks of these terms, or by the exact `store`.
    pub(super) fn decide_chunk<S: Store>(
        self: &Arc<Self>,
        (decision, terms): (&Decision<'_>, &ChunkTerms),
        now: Micros,
        store: &S,
        answers: &mut Answers,
    ) {
        let node = &self.node.0;
        let set = self.sets.lock().of(decision.strategy, &node.sets).cloned();
        let charge = match (decision.op, decision.costs, decision.part) {
            (Op::Charge, &[cost], None) => Some((ChunkOp::Charge, cost)),
            (Op::AtMost, &[cost], None) => Some((ChunkOp::AtMost, cost)),
            _ => None,
        };
        let Some((set, charge)) = set.as_ref().zip(charge) else {
            return self.decide_exactly(decision, set, store, answers);
        };
        let digest = node.chunks.digest(set, decision);
        let limit = only_limit(decision.strategy);
        let known = limit.and_then(|limit| {
            node.chunks.decide_with(digest, |entry| {
                if entry.line.is_in_flight() {
                    return None;
                }
                let moment = entry.moment(node, now);
                entry.count.decide((limit, terms), charge, &moment)
            })
        });
        if let Some(verdict) = known {
            return answers.put(1, StoreAnswer::Ready(Ok(verdicts_of(verdict))));
        }
        let key = self.counts.counter(decision.strategy, &decision.subject);
        let make = || Some(ChunkEntry::new(set, key.clone(), self.counts.server_of(&key)));
        if !set.may_take(now) || node.chunks.with_new(digest, make, |_| ()).is_none() {
            return self.decide_exactly(decision, None, store, answers);
        }
        let own = monotonic() + node.default_deadline;
        let deadline = decision.deadline.map_or(own, |callers| own.min(*callers));
        let (worker, strategy, set) = (Arc::clone(self), Arc::clone(decision.strategy), Arc::clone(set));
        let (op, cost) = charge;
        let pending = PendingChunk { worker, strategy, set, key, digest, op, cost, deadline };
        answers.later(pending.decide());
    }

    /// Lets the exact store decide. What it changes otherwise than by charges makes the node forget what it has shown, if the
    /// node has heard of the places (`set`).
    fn decide_exactly<S: Store>(
        self: &Arc<Self>,
        decision: &Decision<'_>,
        set: Option<Arc<PlaceSet>>,
        store: &S,
        answers: &mut Answers,
    ) {
        let node = &self.node.0;
        node.chunks.central.fetch_add(decision.costs.len() as u64, Relaxed);
        let begun = answers.end();
        store.decide(slice::from_ref(decision), answers);
        let changes = matches!(decision.op, Op::Refund | Op::Reset | Op::Cancel);
        let Some(set) = set.filter(|_| changes) else { return };
        let (worker, digest) = (Arc::clone(self), node.chunks.digest(&set, decision));
        match answers.take_from(begun) {
            StoreAnswer::Later(verdicts) => answers.later(async move {
                let verdicts = verdicts.await;
                worker.node.0.chunks.with(digest, |entry| entry.count.forget_shown());
                verdicts
            }),
            ready @ StoreAnswer::Ready(_) => answers.put(decision.costs.len(), ready),
        }
    }
}

impl<C: CountStore> PendingChunk<C> {
    /// Decides. Nothing is sent before the first poll.
    async fn decide(self) -> Result<Verdicts, StoreError> {
        match self.worker.deadlines.until(self.deadline, self.run()).await {
            Ok(decided) => Ok(verdicts_of(decided?)),
            Err(Passed) => Err(StoreError::Timeout),
        }
    }

    async fn run(&self) -> Result<ChunkVerdict, StoreError> {
        match self.begin()? {
            ChunkStep::Decided(decided) => Ok(decided),
            ChunkStep::Waits(waiting) => match waiting.await {
                Ok(answered) => answered,
                Err(_) => Err(StoreError::Unavailable("the worker that asked for this key stops".into())),
            },
        }
    }

    /// Decides on the node, joins the call about the key, or makes one.
    fn begin(&self) -> Result<ChunkStep, StoreError> {
        let (node, set) = (&self.worker.node.0, &self.set);
        let (Some(terms), Some(limit)) = (set.bound.chunks(), only_limit(&self.strategy)) else {
            return Err(StoreError::Unsupported("its nodes take no chunks"));
        };
        let make = || Some(ChunkEntry::new(set, self.key.clone(), self.worker.counts.server_of(&self.key)));
        let question = ChunkQuestion { op: self.op, cost: self.cost, limit: *limit };
        let (waiter, waiting) = ChunkWaiter::new(question, self.deadline);
        let mut begun = None;
        let step = node.chunks.with_new(self.digest, make, |entry| {
            if entry.line.is_in_flight() {
                return entry.line.join(waiter, node.max_waiting).map(|()| None);
            }
            let moment = entry.moment(node, node.clock.now());
            let decided = entry.count.decide((limit, &terms), (self.op, self.cost), &moment);
            if decided.is_none() {
                entry.line.depart();
                begun = ChunkBatch::of(vec![waiter]).map(|batch| batch.with_call(entry, &terms, &moment));
            }
            Ok(decided)
        });
        if let Some(batch) = begun {
            let (worker, key) = (Arc::clone(&self.worker), self.key.clone());
            tokio::spawn(lead(worker, terms, (key, self.digest), batch));
        }
        match step {
            Some(Ok(Some(decided))) => {
                node.chunks.count_decided(self.digest, 1);
                Ok(ChunkStep::Decided(decided))
            }
            Some(Ok(None)) => Ok(ChunkStep::Waits(waiting)),
            Some(Err(error)) => Err(error),
            // Other keys have filled the table since the call began.
            None => Err(StoreError::Overloaded(super::MAX_KEYS)),
        }
    }
}

impl ApproximateNode {
    /// Removes keys of which nothing is known.
    pub(super) fn sweep_chunks(&self) {
        let now = self.clock.now();
        self.chunks.retain(|entry| !entry.is_idle(now, self.denies_for));
    }
}

/// The only limit of a strategy.
fn only_limit(strategy: &Strategy) -> Option<&Algorithm> {
    strategy.algorithms().first()
}

fn verdicts_of(verdict: ChunkVerdict) -> Verdicts {
    Verdicts { decisions: smallvec![verdict.all], limits: smallvec![verdict.limit], local: None }
}
