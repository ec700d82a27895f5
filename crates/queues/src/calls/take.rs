//! Taking items, and waiting for them.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

use crate::model::{NamedQueue, QueueKind, QueueOp, QueuePart, QueueReply, RedeliveryCause};
use tokio::time::{sleep_until, timeout_at};
use weir_config::AccessRight;
use weir_node::readiness::State;
use weir_time::clock;
use weir_units::Micros;

use super::line::MAX_WAITING;
use super::{QueueFailure, Queues, TakeQuestion, TakenItems, bounds};
use crate::metrics::{QueueCounters, QueueEvent};

/// Poll interval of the first in line: an Enqueue on another node wakes no call here.
const POLL: Duration = Duration::from_millis(100);

/// Shortest pause between two polls.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// Result of one call of the store.
struct Attempt {
    taken: TakenItems,
    next_after: Option<Micros>,
}

impl Queues {
    /// Takes items as soon as there is one, or none after `max_wait`.
    pub async fn take(&self, question: &TakeQuestion<'_>) -> Result<TakenItems, QueueFailure> {
        let named = self.check(question)?;
        let started = clock::monotonic();
        let line = self.line(named);
        // A later caller must not take items that others wait for, unless it does not wait itself.
        if question.max_wait == Micros::ZERO || line.is_empty() {
            let attempt = self.attempt(named, question).await?;
            if !attempt.taken.items.is_empty() || question.max_wait == Micros::ZERO {
                return Ok(attempt.taken);
            }
        }
        let until = started + Duration::from(question.max_wait);
        let until =
            question.deadline.map_or(until, |deadline| until.min(self.reserve.for_store(deadline, started)));
        let place = line.join().ok_or(QueueFailure::TooManyWait(MAX_WAITING))?;
        if let Some(counters) = self.counters(named) {
            counters.waits(true);
        }
        let _waiting = CountedWait { queues: self, named };
        tokio::select! {
            taken = async {
                // Earlier callers take items until then.
                let Ok(_first) = timeout_at(until.into(), place.first()).await else {
                    return Ok(self.none(named, false));
                };
                self.poll(named, question, until).await
            } => taken,
            () = self.closing() => Ok(self.none(named, true)),
        }
    }

    /// Waits until this node shuts down.
    pub async fn closing(&self) {
        // Without a sender nothing changes the state any more: the process ends.
        let _ = self.node.clone().wait_for(|state| *state == State::Closing).await;
    }

    /// Validates a question, and finds its queue.
    pub fn check(&self, question: &TakeQuestion<'_>) -> Result<NamedQueue<'_>, QueueFailure> {
        let named = self.find((question.rights, &[AccessRight::Take]), question.queue)?;
        self.checked(bounds::check_taker(question.consumer, question.max_items))?;
        self.checked(bounds::check_wait(question.max_wait))?;
        Ok(named)
    }

    /// Polls until there is an item.
    async fn poll(
        &self,
        named: NamedQueue<'_>,
        question: &TakeQuestion<'_>,
        until: Instant,
    ) -> Result<TakenItems, QueueFailure> {
        loop {
            let Attempt { taken, next_after } = self.attempt(named, question).await?;
            let now = clock::monotonic();
            if !taken.items.is_empty() || now >= until {
                return Ok(taken);
            }
            let pause = next_after.map_or(POLL, |after| Duration::from(after).clamp(SHORTEST_PAUSE, POLL));
            let next = (now + pause).min(until);
            tokio::select! {
                () = self.line(named).came() => {}
                () = sleep_until(next.into()) => {}
            }
        }
    }

    fn none(&self, named: NamedQueue<'_>, is_closing: bool) -> TakenItems {
        let depth = self.counters(named).map_or(0, QueueCounters::depth);
        TakenItems { items: Vec::new(), depth, is_closing, token: 0, visible_for: None }
    }

    /// The token of a delivery: 64 random bits, so that no worker has another one's.
    fn new_token(&self, named: NamedQueue<'_>) -> u64 {
        if is_acked(named) { RandomState::new().hash_one(clock::monotonic()).max(1) } else { 0 }
    }

    /// Asks the store once, and counts the answer.
    async fn attempt(
        &self,
        named: NamedQueue<'_>,
        question: &TakeQuestion<'_>,
    ) -> Result<Attempt, QueueFailure> {
        let token = self.new_token(named);
        let op = QueueOp::Take { taker: question.consumer, max_items: question.max_items, token };
        let answer = self.ask(named, op, question.deadline).await?;
        let QueueReply::Taken { items, next_after, dead_lettered } = answer.reply else {
            return Err(self.garbled());
        };
        self.dead_lettered(named, dead_lettered);
        let mut first = 0;
        for item in &items {
            let Some(again) = &item.again else {
                first += 1;
                continue;
            };
            let (event, cause) = match again.cause {
                RedeliveryCause::Nack => (QueueEvent::RedeliveredNack, "it was given back"),
                RedeliveryCause::Visibility => {
                    (QueueEvent::RedeliveredVisibility, "it was not acked within the visibility")
                }
            };
            self.count(named, event, 1);
            tracing::info!(
                queue = named.rule.name_of(named.part),
                item = %item.id,
                deliveries = item.deliveries,
                cause,
                consumer = question.consumer,
                previous_consumer = &*again.taker,
                "item redelivered"
            );
        }
        self.count(named, QueueEvent::Delivered, first);
        let visible_for = is_acked(named).then_some(named.rule.numbers().visibility);
        let taken = TakenItems { items, depth: answer.depth, is_closing: false, token, visible_for };
        Ok(Attempt { taken, next_after })
    }
}

/// True if items are acked, and not gone once they are taken.
fn is_acked(named: NamedQueue<'_>) -> bool {
    named.part == QueuePart::Dead || named.rule.numbers().kind == QueueKind::Stream
}

/// Counts a waiting call while it lives.
struct CountedWait<'a> {
    queues: &'a Queues,
    named: NamedQueue<'a>,
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        if let Some(counters) = self.queues.counters(self.named) {
            counters.waits(false);
        }
    }
}
