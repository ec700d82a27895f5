//! The calls about one key: one after the other, each for the callers that came meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::approximate::{CountAnswer, CountAsk, NodePush};
use weir_units::Micros;

use crate::approximate::ApproximateWorker;
use crate::approximate::line::{CountQuestion, CountWaiter, KeyLine};
use crate::approximate::moment::NodeMoment;
use crate::approximate::places::PlaceSet;
use crate::approximate::table::{CountTable, KeyEntry};
use crate::approximate::verdict::CountVerdict;
use crate::{CountStore, CounterKey, StoreError};

/// The callers of one call, which ask the same.
pub(super) struct CountBatch {
    push: Option<NodePush>,
    question: CountQuestion,
    waiters: Vec<CountWaiter>,
}

/// Makes the call of `batch`, and the next ones until nobody waits. A task of its own: a caller that gives up loses only its
/// own answer.
pub(super) async fn lead<C: CountStore>(
    worker: Arc<ApproximateWorker<C>>,
    set: Arc<PlaceSet>,
    (key, digest): (CounterKey, u128),
    mut batch: CountBatch,
) {
    let node = &worker.node.0;
    let flight = KeyFlight { table: &node.table, digest };
    loop {
        let sent = node.clock.now();
        let window = set.bound.window();
        let answer = worker.counts.count(&key, window, batch.ask(set.bound.share()), None).await;
        if let Ok(answer) = &answer {
            worker.learn(&key, digest, (batch.push, *answer), sent, Some(&set));
            node.table.central.fetch_add(batch.waiters.len() as u64, Relaxed);
        }
        let moment = NodeMoment { now: node.clock.now(), clocks: &node.clocks };
        let failure = answer.as_ref().err().cloned();
        batch.answer(&answer, window);
        let following = node.table.with(digest, |entry| match failure {
            Some(error) => {
                entry.line.fail(&error);
                (None, 0)
            }
            None => next(entry, &set, &moment, digest),
        });
        let Some((following, decided)) = following else { break };
        node.table.count_decided(digest, decided);
        match following {
            Some(following) => batch = following,
            None => break,
        }
    }
    std::mem::forget(flight);
}

/// The calls about a key. If their task ends early, nobody waits for them afterwards.
struct KeyFlight<'t> {
    table: &'t CountTable,
    digest: u128,
}

impl Drop for KeyFlight<'_> {
    fn drop(&mut self) {
        self.table.with(self.digest, |entry| entry.line = KeyLine::default());
    }
}

/// Decides for those who wait. What it cannot is the next call. Returns also how many it has decided.
fn next(
    entry: &mut KeyEntry,
    set: &PlaceSet,
    moment: &NodeMoment<'_>,
    digest: u128,
) -> (Option<CountBatch>, u64) {
    let window = moment.window(set, entry.server);
    // Out of the entry for now, because its counter decides.
    let mut line = std::mem::take(&mut entry.line);
    let (waiters, decided) = line.next(|asked| {
        let window = window.as_ref()?;
        entry.decide(window, (asked.op, asked.cost, asked.limit), digest)
    });
    entry.line = line;
    let batch = CountBatch::new(waiters).map(|batch| batch.with_push(window.map(|_| entry.charge())));
    (batch, decided)
}

impl CountBatch {
    pub(super) fn new(waiters: Vec<CountWaiter>) -> Option<Self> {
        let question = waiters.first()?.question;
        Some(Self { push: None, question, waiters })
    }

    /// Adds the units that the node owes to the call.
    pub(super) fn with_push(self, push: Option<NodePush>) -> Self {
        Self { push, ..self }
    }

    fn ask(&self, share: u64) -> CountAsk {
        let Self { push, question: CountQuestion { op, cost, limit }, ref waiters } = *self;
        CountAsk { push, op, cost, times: waiters.len() as u64, limit, share, most: limit }
    }

    fn answer(&mut self, answer: &Result<CountAnswer, StoreError>, window: Micros) {
        let CountQuestion { op, cost, limit } = self.question;
        for (index, waiter) in self.waiters.drain(..).enumerate() {
            waiter.answer(match answer {
                Ok(answer) => Ok(CountVerdict::of_store(answer, (op, cost, limit), index as u64, window)),
                Err(error) => Err(error.clone()),
            });
        }
    }
}
