//! The calls about one key: one after the other, each for the callers that came meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weir_core::approximate::{CountAnswer, CountAsk, CountOp, NodePush};
use weir_time::clock::monotonic;
use weir_units::Micros;

use crate::approximate::ApproximateWorker;
use crate::approximate::moment::NodeMoment;
use crate::approximate::places::PlaceSet;
use crate::approximate::table::{CountTable, CountWaiter, KeyEntry};
use crate::approximate::verdict::CountVerdict;
use crate::{CountStore, CounterKey, StoreError};

/// The callers of one call, which have the same cost.
pub(super) struct CountBatch {
    push: Option<NodePush>,
    op: CountOp,
    cost: u64,
    limit: u64,
    waiters: Vec<CountWaiter>,
}

/// The calls about a key. However they end, nobody waits for them afterwards.
struct KeyFlight<'t> {
    table: &'t CountTable,
    digest: u128,
    has_landed: bool,
}

impl Drop for KeyFlight<'_> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.table.with(self.digest, |entry| {
                entry.is_in_flight = false;
                entry.waiting.clear();
            });
        }
    }
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
    let mut flight = KeyFlight { table: &node.table, digest, has_landed: false };
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
        let mut decided = 0;
        let next = node.table.with(digest, |entry| match failure {
            Some(error) => fail(entry, &error),
            None => next(entry, &set, &moment, (digest, &mut decided)),
        });
        node.table.count_decided(digest, decided);
        match next.flatten() {
            Some(next) => batch = next,
            None => break,
        }
    }
    flight.has_landed = true;
}

/// Those who wait would wait for the same failure.
fn fail(entry: &mut KeyEntry, error: &StoreError) -> Option<CountBatch> {
    entry.is_in_flight = false;
    for waiter in entry.waiting.drain(..) {
        let _ = waiter.reply.send(Err(error.clone()));
    }
    None
}

/// Decides for those who wait, in their order, and counts what the node decides. What it cannot is the next call.
fn next(
    entry: &mut KeyEntry,
    set: &PlaceSet,
    moment: &NodeMoment<'_>,
    (digest, decided): (u128, &mut u64),
) -> Option<CountBatch> {
    let (mut next, now): (Option<CountBatch>, Instant) = (None, monotonic());
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
        let window = moment.window(set, entry.server);
        let asked = (waiter.op, waiter.cost, waiter.limit);
        match window.as_ref().and_then(|window| entry.decide(window, asked, digest)) {
            Some(verdict) => {
                *decided += 1;
                let _ = waiter.reply.send(Ok(verdict));
            }
            None => next = Some(CountBatch::of(waiter, window.map(|_| entry.charge()))),
        }
    }
    entry.is_in_flight = next.is_some();
    next
}

impl CountBatch {
    /// The call of one caller.
    pub(super) fn of(waiter: CountWaiter, push: Option<NodePush>) -> Self {
        let CountWaiter { op, cost, limit, .. } = waiter;
        Self { push, op, cost, limit, waiters: vec![waiter] }
    }

    fn is_for(&self, waiter: &CountWaiter) -> bool {
        let asks = (self.op, self.cost, self.limit) == (waiter.op, waiter.cost, waiter.limit);
        self.op == CountOp::Charge && asks
    }

    fn ask(&self, share: u64) -> CountAsk {
        let Self { push, op, cost, limit, ref waiters } = *self;
        CountAsk { push, op, cost, times: waiters.len() as u64, limit, share, most: limit }
    }

    fn answer(&mut self, answer: &Result<CountAnswer, StoreError>, window: Micros) {
        let asked = (self.op, self.cost, self.limit);
        for (index, waiter) in self.waiters.drain(..).enumerate() {
            let verdict = match answer {
                Ok(answer) => Ok(CountVerdict::of_store(answer, asked, index as u64, window)),
                Err(error) => Err(error.clone()),
            };
            let _ = waiter.reply.send(verdict);
        }
    }
}
