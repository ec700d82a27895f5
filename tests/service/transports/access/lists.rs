//! Rights that need one another, and rights that bound what answers show.

use prost::Message as _;
use weir_proto::v1;
use weir_proto::v1::inline_limit::Algorithm;

use super::super::client::{Call, Client};
use super::super::{RATE_LIMIT, SHOULD_ALLOW, TRANSPORTS, unary};
use super::Guarded;
use super::rights::{DENIED, envoys};
use crate::support::server::{ask, ask_under};

/// A question that brings its limit along.
fn inline(resource: &str) -> v1::ShouldAllowRequest {
    let bucket = v1::InlineTokenBucket {
        rate: 1,
        period: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        burst: Some(5),
    };
    let algorithm = Some(Algorithm::TokenBucket(bucket));
    let inline = v1::InlineLimit { name: "mine".to_owned(), algorithm, ..v1::InlineLimit::default() };
    v1::ShouldAllowRequest { inline: Some(inline), ..ask(resource, "bob") }
}

pub(super) async fn code(client: &mut Client, guarded: &Guarded, holder: &str, call: Call) -> u16 {
    let outcome = client.call(&call.with("authorization", &guarded.bearer(holder))).await;
    outcome.code.unwrap_or_else(|| panic!("{holder}: {outcome:?}"))
}

/// Numbers in a request need `decide` and `inline`, and for lists of strategies they are named `inline`.
#[tokio::test]
async fn limits_in_requests_need_two_rights() {
    let rules = "authorize:
  - { callers: [token:both], may: [decide, inline], resources: [burst/*] }
  - { callers: [token:decide], may: [decide] }
  - { callers: [token:inline], may: [inline] }
  - { callers: [token:named], may: [decide], strategies: [inline] }
  - { callers: [token:named], may: [inline] }
  - { callers: [token:other], may: [decide], strategies: [burst] }
  - { callers: [token:other], may: [inline] }
";
    for transport in TRANSPORTS {
        let holders = ["both", "decide", "inline", "named", "other"];
        let guarded = Guarded::start(transport, &holders, "", rules);
        let mut client = guarded.client().await;
        for (holder, resource, expected) in [
            ("both", "burst/x", 0),
            ("both", "other/x", DENIED),
            ("decide", "burst/x", DENIED),
            ("inline", "burst/x", DENIED),
            ("named", "burst/x", 0),
            ("other", "burst/x", DENIED),
        ] {
            let call = unary(SHOULD_ALLOW, &inline(resource));
            let found = code(&mut client, &guarded, holder, call).await;
            assert_eq!(found, expected, "{transport:?} {holder} {resource}");
        }
        // The strategies of the file go by their own names.
        for (holder, expected) in [("named", DENIED), ("other", 0)] {
            let call = unary(SHOULD_ALLOW, &ask("burst/x", "bob"));
            assert_eq!(code(&mut client, &guarded, holder, call).await, expected, "{transport:?} {holder}");
        }
    }
}

#[tokio::test]
async fn statistics_of_queues_need_either_right_and_hits_are_given_back_with_two() {
    let rules = "authorize:
  - { callers: [token:puts], may: [enqueue], queues: ['work'] }
  - { callers: [token:takes], may: [take], queues: ['work:dead'] }
  - { callers: [token:envoy], may: [envoy], envoy_domains: [basic] }
  - { callers: [token:both], may: [envoy, refund], envoy_domains: ['bas*'] }
  - { callers: [token:apart], may: [envoy], envoy_domains: [basic] }
  - { callers: [token:apart], may: [refund], resources: [basic] }
";
    for transport in TRANSPORTS {
        let holders = ["puts", "takes", "envoy", "both", "apart"];
        let guarded = Guarded::start(transport, &holders, "", rules);
        let mut client = guarded.client().await;
        let stats = |queue: &str| v1::StatsRequest { queue: queue.to_owned(), ..v1::StatsRequest::default() };
        for (holder, queue, expected) in [
            ("puts", "work", 0),
            ("puts", "work:dead", DENIED),
            ("takes", "work", DENIED),
            ("envoy", "work", DENIED),
        ] {
            let call = unary("/weir.v1.QueueService/Stats", &stats(queue));
            assert_eq!(code(&mut client, &guarded, holder, call).await, expected, "{holder} {queue}");
        }
        let dead = unary("/weir.v1.QueueService/Stats", &stats("work:dead"));
        assert_ne!(code(&mut client, &guarded, "takes", dead).await, DENIED, "{transport:?}");
        for (holder, hits, expected) in [
            ("envoy", 1, 0),
            ("envoy", -1, DENIED),
            ("both", 1, 0),
            ("both", -1, 0),
            // One rule must have both: `envoy_domains` bounds them together.
            ("apart", 1, 0),
            ("apart", -1, DENIED),
        ] {
            let call = unary(RATE_LIMIT, &envoys("basic", hits));
            let found = code(&mut client, &guarded, holder, call).await;
            assert_eq!(found, expected, "{transport:?} {holder} {hits}");
        }
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

/// A consumer on a deny list is denied to those who may ask about it. Others do not learn that it is on one.
#[tokio::test]
async fn lists_of_consumers_are_looked_up_after_the_rights() {
    let rules = "authorize:
  - { callers: [token:admin], may: [decide, inspect] }
  - { callers: [token:shop], may: [decide], consumers: [bob] }
access: { deny: [mallory] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], "", rules);
        let mut client = guarded.client().await;
        let before = guarded.counted();
        for consumer in ["mallory", "nobody"] {
            let call = unary(SHOULD_ALLOW, &ask_under("burst", "burst/x", consumer));
            assert_eq!(code(&mut client, &guarded, "shop", call).await, DENIED, "{transport:?} {consumer}");
        }
        assert_eq!(guarded.counted(), before, "{transport:?}");
        let call = unary(SHOULD_ALLOW, &ask_under("burst", "burst/x", "mallory"));
        assert_eq!(code(&mut client, &guarded, "admin", call).await, 0, "{transport:?}");
        assert_ne!(guarded.counted(), before, "{transport:?}");
        // Callers are never labels.
        let page = guarded.server.get_as("/metrics", &guarded.bearer("admin")).1;
        assert!(page.contains("weir_refused_calls_total") && !page.contains("token:"), "{transport:?}");
    }
}
