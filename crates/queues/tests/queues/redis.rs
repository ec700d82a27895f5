//! Queues in Redis: what a call writes, and what happens when a part of it is gone.

use futures_util::future::join_all;
use weir_config::Topology;
use weir_queues::model::{NewItem, QueueNumbers, QueueOp, QueuePart, QueueReply};
use weir_queues::store::{QueueAsk, QueueStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_time::clock::Clock;
use weir_units::Micros;

use super::world::{call, numbers, put, queue, take};
use crate::support::{self, RedisServer};

async fn store(redis: &RedisServer) -> RedisStore {
    support::redis_store(vec![redis.url()], Topology::Single, Clock::System).await
}

/// Work has no expiry. Only ids, which are known for a time, have one.
#[tokio::test]
async fn what_is_in_a_queue_never_expires() {
    let redis = RedisServer::start();
    let store = store(&redis).await;
    let rule = queue(QueueNumbers { max_deliveries: Some(1), ..numbers(9) });
    let items =
        [NewItem { digest: 0, id: "mine", payload: b"x" }, NewItem { digest: 0, id: "", payload: b"y" }];
    call(&store, &rule, QueueOp::Enqueue { items: &items }).await;
    let ids: Vec<_> = take(&store, &rule, QueuePart::Main, 9).await.into_iter().map(|it| it.1).collect();
    call(&store, &rule, QueueOp::Ack { tokens: &[], ids: &ids[..1], outcome: "done" }).await;
    call(&store, &rule, QueueOp::Nack { tokens: &[], ids: &ids[1..], delay: Micros::ZERO }).await;
    take(&store, &rule, QueuePart::Dead, 9).await;
    put(&store, &rule, &["z"]).await;
    take(&store, &rule, QueuePart::Main, 9).await;
    let mut kinds = Vec::new();
    for key in redis.state_keys() {
        let kind = key.split(&format!("Q{}:", rule.name())).nth(1).unwrap().to_owned();
        let lives = redis.pttl(&key);
        match kind.as_str() {
            "id|mine" => assert!((1..=31_000).contains(&lives), "{key}: {lives}"),
            _ => assert_eq!(lives, -1, "{key}"),
        }
        kinds.push(kind);
    }
    kinds.sort();
    assert_eq!(kinds, ["dead", "dead_due", "dead_meta", "due", "id|mine", "meta", "outcomes", "stream"]);
}

/// However many workers there are, the group does not grow.
#[tokio::test]
async fn the_group_has_a_fixed_set_of_consumers() {
    let redis = RedisServer::start();
    let store = store(&redis).await;
    let rule = queue(numbers(200));
    for number in 0..100 {
        put(&store, &rule, &["x"]).await;
        let op = QueueOp::Take { token: 0, taker: &format!("worker {number}"), max_items: 1 };
        call(&store, &rule, op).await;
    }
    let stream = redis.state_keys().into_iter().find(|key| key.ends_with(":stream")).unwrap();
    let consumers: Vec<redis::Value> = redis.query(&["XINFO", "CONSUMERS", &stream, "weir"]);
    assert!((2..=16).contains(&consumers.len()), "{}", consumers.len());
    let pending: Vec<redis::Value> = redis.query(&["XPENDING", &stream, "weir", "-", "+", "200"]);
    assert_eq!(pending.len(), 100);
}

/// The numbers beside a stream were deleted by hand: the stream goes on.
#[tokio::test]
async fn a_stream_without_its_numbers_goes_on() {
    let redis = RedisServer::start();
    let store = store(&redis).await;
    let rule = queue(QueueNumbers { visibility: Micros(1_000), ..numbers(9) });
    put(&store, &rule, &["a", "b"]).await;
    take(&store, &rule, QueuePart::Main, 1).await;
    let keys = redis.state_keys();
    let key = |end: &str| keys.iter().find(|key| key.ends_with(end)).unwrap();
    redis.cli(&["DEL", key(":meta")]);
    assert_eq!(put(&store, &rule, &["c"]).await.depth, 3);
    let mut left = 3;
    while left > 0 {
        for (_, id, _) in take(&store, &rule, QueuePart::Main, 9).await {
            call(&store, &rule, QueueOp::Ack { tokens: &[], ids: &[id], outcome: "" }).await;
            left -= 1;
        }
    }
    assert_eq!(put(&store, &rule, &["d"]).await.depth, 1);
    // The whole stream, with its group and what workers have of it.
    take(&store, &rule, QueuePart::Main, 1).await;
    redis.cli(&["DEL", key(":stream")]);
    assert_eq!(put(&store, &rule, &["e"]).await.depth, 1);
    assert_eq!(take(&store, &rule, QueuePart::Main, 9).await[0].0, "e");
}

#[tokio::test]
async fn a_key_of_another_kind_is_an_error_and_nothing_else() {
    let redis = RedisServer::start();
    let store = store(&redis).await;
    let rule = queue(numbers(9));
    put(&store, &rule, &["a"]).await;
    let stream = redis.state_keys().into_iter().find(|key| key.ends_with(":stream")).unwrap();
    redis.cli(&["SET", &stream, "mine"]);
    let items = [NewItem { digest: 0, id: "", payload: b"x" }];
    for op in [QueueOp::Enqueue { items: &items }, QueueOp::Take { token: 0, taker: "w", max_items: 1 }] {
        let answer = store.queue(&QueueAsk { rule: &rule, part: QueuePart::Main, op, deadline: None }).await;
        assert!(matches!(answer, Err(StoreError::Unreadable(_))), "{answer:?}");
    }
}

/// Without memory nothing is accepted, and what is there can be worked off.
#[tokio::test]
async fn a_server_without_memory_refuses_and_loses_nothing() {
    let redis = RedisServer::start();
    let store = store(&redis).await;
    let rule = queue(QueueNumbers { max_deliveries: Some(1), visibility: Micros(1_000), ..numbers(9) });
    put(&store, &rule, &["a", "b"]).await;
    let a = take(&store, &rule, QueuePart::Main, 1).await[0].1;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let items = [NewItem { digest: 0, id: "", payload: b"x" }];
    let op = QueueOp::Enqueue { items: &items };
    let refused = store.queue(&QueueAsk { rule: &rule, part: QueuePart::Main, op, deadline: None }).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    let acked = call(&store, &rule, QueueOp::Ack { tokens: &[], ids: &[a], outcome: "done" }).await;
    assert_eq!((acked.depth, acked.reply), (1, QueueReply::Settled { done: vec![true], dead_lettered: 0 }));
    let b = take(&store, &rule, QueuePart::Main, 9).await;
    assert_eq!((b.len(), b[0].0.as_str()), (1, "b"));
    let nack = QueueOp::Nack { tokens: &[], ids: &[b[0].1], delay: Micros::ZERO };
    let buried = call(&store, &rule, nack).await;
    assert_eq!((buried.depth, buried.reply), (0, QueueReply::Settled { done: vec![true], dead_lettered: 1 }));
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(take(&store, &rule, QueuePart::Dead, 9).await[0].0, "b");
}

/// Calls of one kind that are ready at the same moment are one script call. An id that cannot be read is the error of its
/// call alone.
#[tokio::test]
async fn calls_that_are_ready_together_share_a_script_call() {
    let redis = RedisServer::start();
    let store = store(&redis).await;
    let rule = queue(numbers(100));
    let items = [NewItem { digest: 0, id: "", payload: b"x" }];
    call(&store, &rule, QueueOp::Enqueue { items: &items }).await;
    let ids = take(&store, &rule, QueuePart::Main, 1).await;
    call(&store, &rule, QueueOp::Ack { tokens: &[], ids: &[ids[0].1], outcome: "" }).await;
    let stream = redis.state_keys().into_iter().find(|key| key.ends_with(":meta")).unwrap();
    redis.cli(&["RPUSH", &stream.replace(":meta", ":id|broken"), "mine"]);
    redis.cli(&["CONFIG", "RESETSTAT"]);
    let broken = [NewItem { digest: 0, id: "broken", payload: b"y" }];
    let ask = |op| QueueAsk { rule: &rule, part: QueuePart::Main, op, deadline: None };
    let puts: Vec<_> = (0..40)
        .map(|number| ask(QueueOp::Enqueue { items: if number == 20 { &broken } else { &items } }))
        .collect();
    let answers = join_all(puts.iter().map(|ask| store.queue(ask))).await;
    for (number, answer) in answers.iter().enumerate() {
        match answer {
            Err(StoreError::Unreadable(_)) => assert_eq!(number, 20),
            Ok(answer) => assert_eq!(answer.depth, number as u64 + u64::from(number < 20), "{number}"),
            Err(error) => panic!("{number}: {error}"),
        }
    }
    let takes: Vec<_> = (0..40).map(|_| ask(QueueOp::Take { token: 0, taker: "w", max_items: 1 })).collect();
    let mut ids = Vec::new();
    for answer in join_all(takes.iter().map(|ask| store.queue(ask))).await {
        let QueueReply::Taken { items, .. } = answer.unwrap().reply else { panic!() };
        ids.extend(items.iter().map(|item| [item.id]));
    }
    assert!(ids.len() == 39 && ids.is_sorted(), "{ids:?}");
    let acks: Vec<_> = ids.iter().map(|ids| ask(QueueOp::Ack { tokens: &[], ids, outcome: "" })).collect();
    let depths = join_all(acks.iter().map(|ask| store.queue(ask))).await;
    let depths: Vec<u64> = depths.into_iter().map(|answer| answer.unwrap().depth).collect();
    assert_eq!(depths, (0..39).rev().collect::<Vec<u64>>());
    let stats: String = redis.query(&["INFO", "commandstats"]);
    assert!(stats.contains("cmdstat_evalsha:calls=3,"), "{stats}");
}
