//! Everything that can happen to items of queues.

use weir_queues::model::{
    ArchiveRule, FullQueue, ItemId, NewItem, QueueAnswer, QueueKind, QueueNumbers, QueueOp, QueueOrder,
    QueuePart, QueueReply, QueueRule,
};
use weir_queues::store::{QueueAsk, QueueStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_units::Micros;

use crate::support::{RedisServer, SOON, eventually};

/// Does it on keys of its own; what the store refused.
pub(crate) async fn everything(store: &RedisStore, redis: &RedisServer, name: &str) -> Vec<StoreError> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let stream = numbers(QueueKind::Stream);
    let stream = QueueRule::new(&format!("stream-{name}"), stream).unwrap();
    let list = QueueRule::new(&format!("list-{name}"), numbers(QueueKind::List)).unwrap();
    let mut failures = Vec::new();
    let items =
        [NewItem { digest: 0, id: "mine", payload: b"x" }, NewItem { digest: 0, id: "", payload: b"y" }];
    let enqueue = QueueOp::Enqueue { items: &items };
    let take = QueueOp::Take { token: 0, taker: "w", max_items: 1 };
    for (rule, part, op) in [
        (&list, QueuePart::Main, enqueue),
        (&list, QueuePart::Main, QueueOp::Stats { outcomes: 1 }),
        (&list, QueuePart::Main, take),
        (&stream, QueuePart::Main, enqueue),
        (&stream, QueuePart::Main, enqueue),
    ] {
        failures.extend(ask(store, rule, part, op).await.err());
    }
    // One is acked, with an outcome, and one is taken until its time is over, and again until it is dead.
    let first = taken(ask(store, &stream, QueuePart::Main, take).await, &mut failures);
    failures.extend(
        ask(store, &stream, QueuePart::Main, QueueOp::Ack { tokens: &[], ids: &first, outcome: "done" })
            .await
            .err(),
    );
    for _ in 0..3 {
        taken(ask(store, &stream, QueuePart::Main, take).await, &mut failures);
        let now = || redis.query::<Vec<u64>>(&["TIME"]).iter().fold(0, |sum, part| sum * 1_000_000 + part);
        let taken = now();
        eventually(SOON, "the end of the visibility", || now() > taken + 1_000);
    }
    let dead = taken(ask(store, &stream, QueuePart::Dead, take).await, &mut failures);
    let nack = QueueOp::Nack { tokens: &[], ids: &dead, delay: Micros::from_secs(60) };
    failures.extend(ask(store, &stream, QueuePart::Dead, nack).await.err());
    // Nothing is there for now, and it says when.
    failures.extend(ask(store, &stream, QueuePart::Dead, take).await.err());
    failures.extend(ask(store, &stream, QueuePart::Main, QueueOp::Stats { outcomes: 1 }).await.err());
    failures.extend(operate(store, &stream, &list).await);
    failures
}

/// Makes the calls of operators. Returns the errors of the store.
async fn operate(store: &RedisStore, stream: &QueueRule, list: &QueueRule) -> Vec<StoreError> {
    let mut failures = Vec::new();
    let after = ItemId::default();
    for (rule, part, op) in [
        (stream, QueuePart::Dead, QueueOp::Browse { after, max_items: 9 }),
        (list, QueuePart::Main, QueueOp::Browse { after, max_items: 9 }),
        // One dead letter was given back for a while, and stays.
        (stream, QueuePart::Main, QueueOp::Redrive { after, max_items: 9 }),
        (stream, QueuePart::Dead, QueueOp::Purge),
        (list, QueuePart::Main, QueueOp::Purge),
    ] {
        failures.extend(ask(store, rule, part, op).await.err());
    }
    failures
}

async fn ask(
    store: &RedisStore,
    rule: &QueueRule,
    part: QueuePart,
    op: QueueOp<'_>,
) -> Result<QueueAnswer, StoreError> {
    store.queue(&QueueAsk { rule, part, op, deadline: None }).await
}

/// The items of an answer. Where there is none, an id that no item has.
fn taken(answer: Result<QueueAnswer, StoreError>, failures: &mut Vec<StoreError>) -> Vec<ItemId> {
    let mut ids = Vec::new();
    match answer.map(|answer| answer.reply) {
        Ok(QueueReply::Taken { items, .. }) => ids.extend(items.into_iter().map(|item| item.id)),
        Ok(_) => {}
        Err(error) => failures.push(error),
    }
    if ids.is_empty() {
        ids.push(ItemId::default());
    }
    ids
}

fn numbers(kind: QueueKind) -> QueueNumbers {
    QueueNumbers {
        kind,
        capacity: 9,
        max_bytes: 1 << 20,
        pace: None,
        visibility: Micros(1_000),
        max_deliveries: (kind == QueueKind::Stream).then_some(2),
        outcomes: ArchiveRule::new(Micros::from_secs(60)),
        max_age: None,
        when_full: FullQueue::Refuse,
        order: QueueOrder::Fifo,
    }
}
