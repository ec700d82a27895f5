//! The use case of queues: finds the queue, asks the store, lets takers wait for items, records one event.
//!
//! There is no failure policy: work that no store has is not accepted.

mod bounds;
pub(crate) mod depths;
pub(crate) mod kinds;
mod line;
mod operate;
mod question;
mod shared;
mod take;

use std::sync::Arc;
use std::time::Instant;

use crate::model::{
    ItemId, NamedQueue, NewItem, QueueAnswer, QueueKind, QueueOp, QueuePart, QueueRefusal, QueueReply,
    QueueStats, UnknownQueue,
};
use tokio::sync::watch;
use weir_config::AccessRight;
use weir_node::access::{Rights, SnapshotRights};
use weir_node::limiter::{self, AnswerReserve, InvalidField};
use weir_node::readiness::State;
use weir_node::telemetry::{Rejection, WorkerCounters};
use weir_store::StoreError;
use weir_time::clock;
use weir_units::Micros;

pub use self::bounds::{MAX_CREDIT, MAX_WAIT};
use self::line::TakeLine;
pub use self::operate::{Browsed, FoundOutcomes, QueuePage, Redriven};
pub use self::question::{PutItem, QueueFailure, TakeQuestion, TakenItems, WorkersItems};
pub(crate) use self::shared::CurrentQueues;
pub use self::shared::SharedQueues;
use crate::metrics::{QueueCounters, QueueEvent};
use crate::store::{QueueAsk, QueueHandle, QueueStore as _};

/// Answers calls about queues from one store. Each worker has its own.
#[derive(Clone)]
pub struct Queues {
    shared: Arc<SharedQueues>,
    rights: SnapshotRights,
    store: QueueHandle,
    recorder: Arc<WorkerCounters>,
    /// Signals that this node is shutting down.
    node: watch::Receiver<State>,
    reserve: AnswerReserve,
}

/// Result of an enqueue.
#[derive(Debug, Clone)]
pub struct Enqueued {
    /// The ids of the items and the number of new ones, or the reason why none was enqueued.
    pub accepted: Result<(Vec<ItemId>, u64), QueueRefusal>,
    /// Number of other items that were dropped for them.
    pub dropped: u64,
    /// Number of items that hold a place.
    pub depth: u64,
    /// Number of places.
    pub capacity: u64,
}

/// Result of an Ack or a Nack.
#[derive(Debug, Clone)]
pub struct Settled {
    /// True for each item that a worker had, in the order of the call.
    pub done: Vec<bool>,
    /// Number of items moved to the dead letters.
    pub dead_lettered: u64,
    /// Number of items that hold a place.
    pub depth: u64,
}

impl Queues {
    /// The queues of one worker, which counts calls of its store in `recorder`.
    #[must_use]
    pub fn new(
        shared: Arc<SharedQueues>,
        store: QueueHandle,
        recorder: Arc<WorkerCounters>,
        node: watch::Receiver<State>,
    ) -> Self {
        let (rights, reserve) = (SnapshotRights::default(), AnswerReserve::default());
        Self { shared, rights, store, recorder, node, reserve }
    }

    /// Sets the time of callers' deadlines that is kept for answers without the store.
    #[must_use]
    pub fn with_reserve(self, reserve: AnswerReserve) -> Self {
        Self { reserve, ..self }
    }

    /// Returns a copy that serves another configuration.
    #[must_use]
    pub fn with_snapshot(&self, shared: Arc<SharedQueues>, rights: SnapshotRights) -> Self {
        Self { shared, rights, ..self.clone() }
    }

    /// The rules of `authorize` that judge its callers.
    pub(crate) fn rights(&self) -> &SnapshotRights {
        &self.rights
    }

    /// Puts all items into a queue, or none. A refusal is an answer, not an error.
    pub async fn enqueue(
        &self,
        rights: Rights<'_>,
        queue: &str,
        items: &[PutItem<'_>],
        deadline: Option<Instant>,
    ) -> Result<Enqueued, QueueFailure> {
        let named = self.find((rights, &[AccessRight::Enqueue]), queue)?;
        if named.is_removed {
            return Err(self.unknown(self.shared.rules.unknown(queue)));
        }
        if named.part == QueuePart::Dead {
            return Err(
                self.unsupported(format!("nobody can put items into `{queue}`; put them into its queue"))
            );
        }
        self.checked(bounds::check_items(items))?;
        let items: Vec<NewItem<'_>> = items.iter().map(|item| item.to_new()).collect();
        let answer = self.ask(named, QueueOp::Enqueue { items: &items }, deadline).await?;
        let capacity = named.rule.numbers().capacity;
        let count = |event, items| self.count(named, event, items);
        let mut were_dropped = 0;
        let accepted = match answer.reply {
            QueueReply::Accepted { ids, added, dropped } => {
                count(QueueEvent::Accepted, added);
                count(QueueEvent::Dropped, dropped);
                were_dropped = dropped;
                if added > 0 {
                    self.line(named).wake();
                }
                Ok((ids, added))
            }
            QueueReply::Refused(QueueRefusal::OtherPayload(place)) => {
                let id =
                    usize::try_from(place).ok().and_then(|place| items.get(place)).map_or("", |item| item.id);
                self.recorder.rejected(Rejection::Invalid);
                return Err(QueueFailure::OtherPayload(limiter::shown(id)));
            }
            QueueReply::Refused(refusal) => {
                let event = match refusal {
                    QueueRefusal::Full => QueueEvent::Full,
                    QueueRefusal::Never | QueueRefusal::OtherPayload(_) => QueueEvent::Never,
                };
                count(event, items.len() as u64);
                Err(refusal)
            }
            _ => return Err(self.garbled()),
        };
        Ok(Enqueued { accepted, dropped: were_dropped, depth: answer.depth, capacity })
    }

    /// Acks items.
    pub async fn ack(
        &self,
        rights: Rights<'_>,
        queue: &str,
        (items, outcome): (WorkersItems<'_>, &str),
        deadline: Option<Instant>,
    ) -> Result<Settled, QueueFailure> {
        let named = self.find_stream(rights, queue)?;
        self.checked(bounds::check_outcome(outcome))?;
        let WorkersItems { ids, tokens } = items;
        self.settle(named, (QueueOp::Ack { ids, tokens, outcome }, items), deadline).await
    }

    /// Nacks items.
    pub async fn nack(
        &self,
        rights: Rights<'_>,
        queue: &str,
        (items, delay): (WorkersItems<'_>, Micros),
        deadline: Option<Instant>,
    ) -> Result<Settled, QueueFailure> {
        let named = self.find_stream(rights, queue)?;
        self.checked(bounds::check_delay(delay))?;
        let WorkersItems { ids, tokens } = items;
        let op = QueueOp::Nack { ids, tokens, delay };
        let settled = self.settle(named, (op, items), deadline).await?;
        if delay == Micros::ZERO {
            self.line(named).wake();
        }
        Ok(settled)
    }

    /// Gives the workers of items more time.
    pub async fn extend(
        &self,
        rights: Rights<'_>,
        queue: &str,
        (items, visibility): (WorkersItems<'_>, Micros),
        deadline: Option<Instant>,
    ) -> Result<Settled, QueueFailure> {
        let named = self.find_stream(rights, queue)?;
        self.checked(bounds::check_visibility(visibility))?;
        let WorkersItems { ids, tokens } = items;
        let op = QueueOp::Extend { ids, tokens, visibility };
        self.settle(named, (op, items), deadline).await
    }

    /// Statistics of a queue: its depth and bounds, and the totals.
    pub async fn stats(
        &self,
        rights: Rights<'_>,
        queue: &str,
        outcomes: usize,
        deadline: Option<Instant>,
    ) -> Result<(u64, NamedQueue<'_>, QueueStats), QueueFailure> {
        let named = self.find((rights, &[AccessRight::Enqueue, AccessRight::Take]), queue)?;
        self.checked(bounds::check_shown("outcomes", outcomes))?;
        let answer = self.ask(named, QueueOp::Stats { outcomes }, deadline).await?;
        match answer.reply {
            QueueReply::Stats(mut stats) => {
                stats.newest = operate::redacted_for(rights, queue, stats.newest);
                Ok((answer.depth, named, stats))
            }
            _ => Err(self.garbled()),
        }
    }

    async fn settle(
        &self,
        named: NamedQueue<'_>,
        (op, items): (QueueOp<'_>, WorkersItems<'_>),
        deadline: Option<Instant>,
    ) -> Result<Settled, QueueFailure> {
        self.checked(bounds::check_ids(items))?;
        let event = match op {
            QueueOp::Ack { .. } => QueueEvent::Acked,
            QueueOp::Nack { .. } => QueueEvent::Nacked,
            _ => QueueEvent::Extended,
        };
        let QueueAnswer { depth, reply, .. } = self.ask(named, op, deadline).await?;
        let QueueReply::Settled { done, dead_lettered } = reply else { return Err(self.garbled()) };
        self.count(named, event, done.iter().filter(|done| **done).count() as u64);
        self.dead_lettered(named, dead_lettered);
        Ok(Settled { done, dead_lettered, depth })
    }

    /// Asks the store once.
    async fn ask(
        &self,
        named: NamedQueue<'_>,
        op: QueueOp<'_>,
        deadline: Option<Instant>,
    ) -> Result<QueueAnswer, QueueFailure> {
        let started = clock::monotonic();
        let deadline = deadline.map(|deadline| self.reserve.for_store(deadline, started));
        let answer = self.store.queue(&QueueAsk { rule: named.rule, part: named.part, op, deadline }).await;
        let took = clock::monotonic().saturating_duration_since(started);
        self.recorder.store_called(took, answer.as_ref().err());
        match answer {
            Ok(answer) => {
                if let Some(counters) = self.counters(named) {
                    counters.saw_depth(answer.depth);
                    counters.count(QueueEvent::AgedOut, answer.aged_out);
                }
                Ok(answer)
            }
            Err(error) => {
                tracing::debug!(queue = named.rule.name(), %error, "store cannot answer for a queue");
                Err(QueueFailure::Store(error))
            }
        }
    }

    /// Finds a queue, after the check that the caller has one of these rights to it.
    fn find(
        &self,
        (caller, rights): (Rights<'_>, &[AccessRight]),
        queue: &str,
    ) -> Result<NamedQueue<'_>, QueueFailure> {
        caller.check_queue(rights, queue)?;
        self.shared.rules.find(queue).map_err(|unknown| self.unknown(unknown))
    }

    fn unknown(&self, UnknownQueue { name, near }: UnknownQueue) -> QueueFailure {
        self.recorder.rejected(Rejection::Unknown);
        QueueFailure::Unknown(UnknownQueue { name: limiter::shown(&name), near })
    }

    /// Finds a queue whose items are acked.
    fn find_stream(&self, rights: Rights<'_>, queue: &str) -> Result<NamedQueue<'_>, QueueFailure> {
        let named = self.find((rights, &[AccessRight::Take]), queue)?;
        match named.rule.numbers().kind {
            QueueKind::Stream => Ok(named),
            QueueKind::List => Err(self.unsupported(format!(
                "queue `{queue}` is a list: its items are gone as soon as they are taken, and are neither acked, nacked nor extended"
            ))),
        }
    }

    fn checked<T>(&self, checked: Result<T, InvalidField>) -> Result<T, QueueFailure> {
        checked.map_err(|error| {
            self.recorder.rejected(Rejection::Invalid);
            QueueFailure::Invalid(error)
        })
    }

    fn unsupported(&self, why: String) -> QueueFailure {
        self.recorder.rejected(Rejection::Invalid);
        QueueFailure::Unsupported(why)
    }

    fn garbled(&self) -> QueueFailure {
        QueueFailure::Store(StoreError::Refused("it answered another question".into()))
    }

    fn line(&self, named: NamedQueue<'_>) -> &TakeLine {
        &self.shared.lines[number(named)]
    }

    fn counters(&self, named: NamedQueue<'_>) -> Option<&QueueCounters> {
        self.shared.counters.get(number(named)).map(|counters| &**counters)
    }

    fn count(&self, named: NamedQueue<'_>, event: QueueEvent, items: u64) {
        if let Some(counters) = self.counters(named) {
            counters.count(event, items);
        }
    }

    fn dead_lettered(&self, named: NamedQueue<'_>, items: u64) {
        if items > 0 {
            self.count(named, QueueEvent::DeadLettered, items);
            tracing::info!(
                queue = named.rule.name(),
                items,
                "items moved to the dead letters; they reached `max_deliveries` without an ack"
            );
        }
    }
}

/// Index of a queue, or of its dead letters, among the lines and counters.
fn number(named: NamedQueue<'_>) -> usize {
    named.index * 2 + usize::from(named.part == QueuePart::Dead)
}
