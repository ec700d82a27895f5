//! Items that the group of a queue has, and that are due at no time: older versions left them, where a right was missing.

use weir_config::Topology;
use weir_queues::model::{QueueOp, QueuePart};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use crate::support::queues::{START, call, numbers, put, queue, take};
use crate::support::{RedisServer, redis_store};

/// Reads so many items into the group, as a call does that is refused afterwards.
fn lose(redis: &RedisServer, count: usize) {
    let stream = redis.state_keys().into_iter().find(|key| key.ends_with(":stream")).unwrap();
    let count = count.to_string();
    redis.cli(&["XREADGROUP", "GROUP", "weir", "weir-5", "COUNT", &count, "STREAMS", &stream, ">"]);
}

#[tokio::test]
async fn an_empty_queue_finds_them_at_once() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
    let rule = queue(numbers(100));
    put(&store, &rule, &["a", "b", "c"]).await;
    assert_eq!(take(&store, &rule, QueuePart::Main, 1).await[0].0, "a");
    lose(&redis, 2);
    assert!(take(&store, &rule, QueuePart::Main, 9).await.is_empty(), "they are found, for the next call");
    let found: Vec<_> = take(&store, &rule, QueuePart::Main, 9).await;
    let found: Vec<_> = found.iter().map(|(name, _, deliveries)| (name.as_str(), *deliveries)).collect();
    assert_eq!(found, [("b", 1), ("c", 1)], "nobody has had them");
}

/// A queue that is never empty is looked through after each 1,000 deliveries.
#[tokio::test]
async fn a_busy_queue_finds_them_too() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
    let rule = queue(numbers(5000));
    put(&store, &rule, &["held"]).await;
    // The group exists from the first call on.
    assert_eq!(take(&store, &rule, QueuePart::Main, 1).await[0].0, "held");
    put(&store, &rule, &["lost"]).await;
    lose(&redis, 1);
    let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (mut delivered, mut found) = (0, false);
    while !found && delivered < 1300 {
        put(&store, &rule, &many).await;
        put(&store, &rule, &many).await;
        let taken = take(&store, &rule, QueuePart::Main, 100).await;
        delivered += taken.len();
        found = taken.iter().any(|(name, ..)| name == "lost");
        let ids: Vec<_> = taken.iter().map(|(_, id, _)| *id).collect();
        call(&store, &rule, QueueOp::Ack { tokens: &[], ids: &ids, outcome: "" }).await;
    }
    assert!(found, "not within {delivered} deliveries");
}
