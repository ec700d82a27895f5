//! The calls about one key: one after the other, each for the callers that came meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::algorithm::Algorithm;
use weir_core::approximate::{ChunkAnswer, ChunkCall, ChunkMoment, ChunkOp, ChunkTerms};
use weir_time::clock::monotonic;

use super::entry::{ChunkEntry, ChunkWaiter};
use crate::approximate::table::KeyTable;
use crate::approximate::{ApproximateNode, ApproximateWorker};
use crate::{CountStore, CounterKey, StoreError};

/// The callers of one call, which have the same cost and limit.
pub(super) struct ChunkBatch {
    op: ChunkOp,
    cost: u64,
    limit: Algorithm,
    waiters: Vec<ChunkWaiter>,
}

/// The calls about a key. However they end, nobody waits for them afterwards.
struct ChunkFlight<'t> {
    table: &'t KeyTable<ChunkEntry>,
    digest: u128,
    has_landed: bool,
}

impl Drop for ChunkFlight<'_> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.table.with(self.digest, |entry| {
                entry.is_in_flight = false;
                entry.waiting.clear();
            });
        }
    }
}

/// Makes the call of a batch, and the next ones until nobody waits. A task of its own: a caller that gives up loses only its
/// own answer.
pub(super) async fn lead<C: CountStore>(
    worker: Arc<ApproximateWorker<C>>,
    terms: ChunkTerms,
    (key, digest): (CounterKey, u128),
    (mut batch, mut call): (ChunkBatch, ChunkCall),
) {
    let node = &worker.node.0;
    let mut flight = ChunkFlight { table: &node.chunks, digest, has_landed: false };
    loop {
        let answer = worker.counts.chunk(&key, call.limit(), &call.ask, None).await;
        let server = worker.counts.server_of(&key);
        let failure = match answer {
            Ok(answer) => {
                server.into_iter().for_each(|server| {
                    node.clocks.learn(server, answer.now, call.sent(), node.clock.now());
                });
                node.chunks.central.fetch_add(batch.waiters.len() as u64, Relaxed);
                batch.answer(&call, &answer, |after| {
                    node.chunks
                        .with(digest, |entry| entry.learn((&call, &answer, after), server, node, digest));
                })
            }
            Err(error) => Some(error),
        };
        let mut decided = 0;
        let following = node.chunks.with(digest, |entry| match &failure {
            Some(error) => fail(entry, error),
            None => next(entry, node, &terms, &mut decided),
        });
        if let Some(error) = failure {
            batch.fail(&error);
        }
        node.chunks.count_decided(digest, decided);
        match following.flatten() {
            Some(following) => (batch, call) = following,
            None => break,
        }
    }
    flight.has_landed = true;
}

/// Those who wait would wait for the same failure.
fn fail(entry: &mut ChunkEntry, error: &StoreError) -> Option<(ChunkBatch, ChunkCall)> {
    entry.is_in_flight = false;
    for waiter in entry.waiting.drain(..) {
        let _ = waiter.reply.send(Err(error.clone()));
    }
    None
}

/// Decides for those who wait, in their order, and counts what the node decides. What it cannot is the next call.
fn next(
    entry: &mut ChunkEntry,
    node: &ApproximateNode,
    terms: &ChunkTerms,
    decided: &mut u64,
) -> Option<(ChunkBatch, ChunkCall)> {
    let (mut next, now): (Option<ChunkBatch>, _) = (None, monotonic());
    let moment = entry.moment(node, node.clock.now());
    for waiter in std::mem::take(&mut entry.waiting) {
        if waiter.is_gone(now) {
            continue;
        }
        if let Some(batch) = &mut next {
            match batch.is_for(&waiter) {
                true => batch.waiters.push(waiter),
                false => entry.waiting.push_back(waiter),
            }
            continue;
        }
        match entry.count.decide((&waiter.limit, terms), (waiter.op, waiter.cost), &moment) {
            Some(verdict) => {
                *decided += 1;
                let _ = waiter.reply.send(Ok(verdict));
            }
            None => next = Some(ChunkBatch::of(waiter)),
        }
    }
    entry.is_in_flight = next.is_some();
    next.map(|batch| batch.with_call(entry, terms, &moment))
}

impl ChunkBatch {
    /// The call of one caller.
    pub(super) fn of(waiter: ChunkWaiter) -> Self {
        let ChunkWaiter { op, cost, limit, .. } = waiter;
        Self { op, cost, limit, waiters: vec![waiter] }
    }

    /// The call for all of them.
    pub(super) fn with_call(
        self,
        entry: &mut ChunkEntry,
        terms: &ChunkTerms,
        moment: &ChunkMoment,
    ) -> (Self, ChunkCall) {
        let times = self.waiters.len() as u64;
        let call = entry.count.ask((&self.limit, terms), (self.op, self.cost, times), moment);
        (self, call)
    }

    fn is_for(&self, waiter: &ChunkWaiter) -> bool {
        let asks = (self.op, self.cost) == (waiter.op, waiter.cost);
        self.op == ChunkOp::Charge && asks && self.limit == waiter.limit
    }

    /// Answers them after `learn` has taken in the state that the answer leaves. Returns why the answer is of no use.
    fn answer(
        &mut self,
        call: &ChunkCall,
        answer: &ChunkAnswer,
        learn: impl FnOnce(Option<weir_core::algorithm::State>),
    ) -> Option<StoreError> {
        let mut verdicts = Vec::with_capacity(self.waiters.len());
        let Some(after) = answer.verdicts(&self.limit, &call.ask, |verdict| verdicts.push(verdict)) else {
            return Some(StoreError::Refused(
                "the script's answer contradicts the state that it shows".into(),
            ));
        };
        learn(after);
        for (waiter, verdict) in self.waiters.drain(..).zip(verdicts) {
            let _ = waiter.reply.send(Ok(verdict));
        }
        None
    }

    fn fail(&mut self, error: &StoreError) {
        for waiter in self.waiters.drain(..) {
            let _ = waiter.reply.send(Err(error.clone()));
        }
    }
}
