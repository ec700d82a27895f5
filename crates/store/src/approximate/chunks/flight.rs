//! The calls about one key: one after the other, each for the callers that came meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::algorithm::State;
use weir_core::approximate::{ChunkAnswer, ChunkCall, ChunkMoment, ChunkOp, ChunkTerms};

use super::entry::{ChunkEntry, ChunkQuestion, ChunkWaiter};
use crate::approximate::key_flight::KeyFlight;
use crate::approximate::{ApproximateNode, ApproximateWorker};
use crate::{CountStore, CounterKey, StoreError};

/// The callers of one call, which ask the same.
pub(super) struct ChunkBatch {
    question: ChunkQuestion,
    waiters: Vec<ChunkWaiter>,
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
    let flight = KeyFlight::new(&node.chunks, digest);
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
        let following = node.chunks.with(digest, |entry| match &failure {
            Some(error) => {
                entry.line.fail(error);
                (None, 0)
            }
            None => next(entry, node, &terms),
        });
        if let Some(error) = failure {
            batch.fail(&error);
        }
        let Some((following, decided)) = following else { break };
        node.chunks.count_decided(digest, decided);
        match following {
            Some(following) => (batch, call) = following,
            None => break,
        }
    }
    flight.land();
}

/// Decides for those who wait. What it cannot is the next call. Returns also how many it has decided.
fn next(
    entry: &mut ChunkEntry,
    node: &ApproximateNode,
    terms: &ChunkTerms,
) -> (Option<(ChunkBatch, ChunkCall)>, u64) {
    let moment = entry.moment(node, node.clock.now());
    let ChunkEntry { line, count, .. } = entry;
    let (waiters, decided) = line
        .next(&ChunkOp::Charge, |asked| count.decide((&asked.limit, terms), (asked.op, asked.cost), &moment));
    let batch = ChunkBatch::of(waiters).map(|batch| batch.with_call(entry, terms, &moment));
    (batch, decided)
}

impl ChunkBatch {
    /// The call of these callers; `None` if there are none.
    pub(super) fn of(waiters: Vec<ChunkWaiter>) -> Option<Self> {
        let question = waiters.first()?.question;
        Some(Self { question, waiters })
    }

    /// The call for all of them.
    pub(super) fn with_call(
        self,
        entry: &mut ChunkEntry,
        terms: &ChunkTerms,
        moment: &ChunkMoment,
    ) -> (Self, ChunkCall) {
        let ChunkQuestion { op, cost, limit } = &self.question;
        let times = self.waiters.len() as u64;
        let call = entry.count.ask((limit, terms), (*op, *cost, times), moment);
        (self, call)
    }

    /// Answers them after `learn` has taken in the state that the answer leaves. Returns why the answer is of no use.
    fn answer(
        &mut self,
        call: &ChunkCall,
        answer: &ChunkAnswer,
        learn: impl FnOnce(Option<State>),
    ) -> Option<StoreError> {
        let mut verdicts = Vec::with_capacity(self.waiters.len());
        let limit = &self.question.limit;
        let Some(after) = answer.verdicts(limit, &call.ask, |verdict| verdicts.push(verdict)) else {
            return Some(StoreError::Refused(
                "the script's answer contradicts the state that it shows".into(),
            ));
        };
        learn(after);
        for (waiter, verdict) in self.waiters.drain(..).zip(verdicts) {
            waiter.answer(Ok(verdict));
        }
        None
    }

    fn fail(&mut self, error: &StoreError) {
        self.waiters.drain(..).for_each(|waiter| waiter.answer(Err(error.clone())));
    }
}
