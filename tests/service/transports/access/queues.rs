//! Rights to the statistics and to the archive of a queue.

use prost::Message as _;
use weir_proto::v1;

use super::super::{TRANSPORTS, unary};
use super::Guarded;
use super::lists::code;
use super::rights::DENIED;

#[tokio::test]
async fn statistics_of_queues_need_either_right() {
    let rules = "authorize:
  - { callers: [token:puts], may: [enqueue], queues: ['work'] }
  - { callers: [token:takes], may: [take], queues: ['work:dead'] }
  - { callers: [token:other], may: [decide] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["puts", "takes", "other"], "", rules);
        let mut client = guarded.client().await;
        let stats = |queue: &str| v1::StatsRequest { queue: queue.to_owned(), ..v1::StatsRequest::default() };
        for (holder, queue, expected) in [
            ("puts", "work", 0),
            ("puts", "work:dead", DENIED),
            ("takes", "work", DENIED),
            ("other", "work", DENIED),
        ] {
            let call = unary("/weir.v1.QueueService/Stats", &stats(queue));
            assert_eq!(code(&mut client, &guarded, holder, call).await, expected, "{holder} {queue}");
        }
        let dead = unary("/weir.v1.QueueService/Stats", &stats("work:dead"));
        assert_ne!(code(&mut client, &guarded, "takes", dead).await, DENIED, "{transport:?}");
    }
}

/// A caller that only puts items in does not see the work of others in the archive.
#[tokio::test]
async fn payloads_in_the_archive_need_the_right_to_take_or_to_inspect() {
    let rules = "authorize:
  - { callers: [token:worker], may: [enqueue, take], queues: [work] }
  - { callers: [token:puts], may: [enqueue], queues: [work] }
  - { callers: [token:looks], may: [enqueue, inspect], queues: [work] }
";
    let guarded = Guarded::start(TRANSPORTS[0], &["worker", "puts", "looks"], "", rules);
    let mut client = guarded.client().await;
    let queue = || "work".to_owned();
    let items = vec![v1::NewItem { payload: b"secret".to_vec(), id: String::new() }];
    let put = unary("/weir.v1.QueueService/Enqueue", &v1::EnqueueRequest { queue: queue(), items });
    assert_eq!(code(&mut client, &guarded, "worker", put).await, 0);
    let take = v1::TakeRequest { queue: queue(), consumer: "w".to_owned(), ..v1::TakeRequest::default() };
    let take = unary("/weir.v1.QueueService/Take", &take);
    let taken = client.call(&take.with("authorization", &guarded.bearer("worker"))).await;
    let taken = v1::TakeResponse::decode(&taken.body[5..]).unwrap();
    let ids = vec![taken.items[0].id.clone()];
    let ack = v1::AckRequest { queue: queue(), ids, ..v1::AckRequest::default() };
    assert_eq!(code(&mut client, &guarded, "worker", unary("/weir.v1.QueueService/Ack", &ack)).await, 0);
    let outcomes = v1::OutcomesRequest { queue: queue(), ..v1::OutcomesRequest::default() };
    let outcomes = unary("/weir.v1.QueueService/Outcomes", &outcomes);
    let stats = unary("/weir.v1.QueueService/Stats", &v1::StatsRequest { queue: queue(), outcomes: 1 });
    for (holder, head) in [("worker", &b"secret"[..]), ("puts", b""), ("looks", b"secret")] {
        let found = client.call(&outcomes.clone().with("authorization", &guarded.bearer(holder))).await;
        let found = v1::OutcomesResponse::decode(&found.body[5..]).unwrap().outcomes;
        let stats = client.call(&stats.clone().with("authorization", &guarded.bearer(holder))).await;
        let newest = v1::StatsResponse::decode(&stats.body[5..]).unwrap().newest;
        for outcome in [&found[0], &newest[0]] {
            assert_eq!((&outcome.payload_head[..], outcome.payload_bytes), (head, 6), "{holder}");
        }
    }
}
