//! The engines of queues, and queues for tests.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_config::{MemoryConfig, Topology};
use weir_queues::model::{
    ArchiveRule, BoundedQueue, FullQueue, ItemId, NewItem, QueueAnswer, QueueKind, QueueNumbers, QueueOp,
    QueueOrder, QueuePart, QueueReply, QueueRule,
};
use weir_queues::store::ProcessQueues;
use weir_queues::store::{QueueAsk, QueueStore};
use weir_store::StoreError;
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use crate::support;

/// 2024-01-01T00:00:00Z.
pub const START: u64 = 1_704_067_200_000_000;

/// The pure state machine over a map.
pub struct PureQueues {
    queues: Mutex<HashMap<String, BoundedQueue>>,
    clock: ManualClock,
}

impl QueueStore for PureQueues {
    async fn queue(&self, ask: &QueueAsk<'_>) -> Result<QueueAnswer, StoreError> {
        let mut queues = self.queues.lock().unwrap();
        let queue = queues.entry(ask.rule.name().to_owned()).or_default();
        Ok(queue.call(ask.rule.numbers(), ask.part, &ask.op, self.clock.now()))
    }
}

/// The pure state machine on a clock.
pub fn pure(clock: &ManualClock) -> PureQueues {
    PureQueues { queues: Mutex::default(), clock: clock.clone() }
}

/// The memory store on a clock.
pub fn memory(clock: &ManualClock) -> ProcessQueues {
    ProcessQueues::new(MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone())).clock())
}

/// The Redis that tests share.
pub async fn redis(clock: &ManualClock) -> RedisStore {
    let nodes = vec![support::shared_redis().url()];
    support::redis_store(nodes, Topology::Single, Clock::Manual(clock.clone())).await
}

/// The cluster that tests share.
pub async fn cluster(clock: &ManualClock) -> RedisStore {
    let nodes = support::shared_cluster().urls();
    support::redis_store(nodes, Topology::Cluster, Clock::Manual(clock.clone())).await
}

/// A stream of so many places, 30 s of visibility and 3 deliveries.
pub fn numbers(capacity: u64) -> QueueNumbers {
    QueueNumbers {
        kind: QueueKind::Stream,
        capacity,
        max_bytes: 1 << 20,
        pace: None,
        visibility: Micros::from_secs(30),
        max_deliveries: Some(3),
        outcomes: ArchiveRule::new(Micros::from_secs(3600)),
        max_age: None,
        when_full: FullQueue::Refuse,
        order: QueueOrder::Fifo,
    }
}

/// A queue of a name that no other has.
pub fn queue(numbers: QueueNumbers) -> QueueRule {
    static QUEUES: AtomicU64 = AtomicU64::new(0);
    // The servers that tests share outlive a run.
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("q{run}-{}", QUEUES.fetch_add(1, Ordering::Relaxed));
    QueueRule::new(&name, numbers).unwrap_or_else(|error| panic!("{error}"))
}

/// One call of the queue itself.
pub async fn call(store: &impl QueueStore, rule: &QueueRule, op: QueueOp<'_>) -> QueueAnswer {
    call_part(store, rule, QueuePart::Main, op).await
}

/// One call of the queue or its dead letters.
pub async fn call_part(
    store: &impl QueueStore,
    rule: &QueueRule,
    part: QueuePart,
    op: QueueOp<'_>,
) -> QueueAnswer {
    store.queue(&QueueAsk { rule, part, op, deadline: None }).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Puts payloads without ids.
pub async fn put(store: &impl QueueStore, rule: &QueueRule, payloads: &[&str]) -> QueueAnswer {
    let items: Vec<_> =
        payloads.iter().map(|it| NewItem { digest: 0, id: "", payload: it.as_bytes() }).collect();
    call(store, rule, QueueOp::Enqueue { items: &items }).await
}

/// Takes so many; the payloads, ids, and how often they were delivered.
pub async fn take(
    store: &impl QueueStore,
    rule: &QueueRule,
    part: QueuePart,
    max_items: usize,
) -> Vec<(String, ItemId, u64)> {
    let answer = call_part(store, rule, part, QueueOp::Take { token: 0, taker: "worker", max_items }).await;
    let QueueReply::Taken { items, .. } = answer.reply else { panic!("{answer:?}") };
    let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).unwrap();
    items.iter().map(|item| (text(&item.payload), item.id, item.deliveries)).collect()
}
