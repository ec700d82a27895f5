//! Each kind of call on one node, and what callers are told.

use tonic::Code;
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::{DebitRequest, RefundRequest, ResetRequest};

use super::*;

/// Answers at the limit are those of an exact strategy, but for the flag.
#[tokio::test]
async fn at_the_limit_calls_are_denied_until_the_window_ends() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, 12, "{ max_over: 4, nodes: 2 }");
    let mut client = node.client().await;
    for left in (0..12).rev() {
        let answer = charge(&mut client, "c", 1).await;
        assert_eq!((answer.allowed, answer.remaining, answer.approximate), (true, Some(left), true));
    }
    let denied = charge(&mut client, "c", 1).await;
    assert_eq!((denied.allowed, denied.remaining, denied.approximate), (false, Some(0), true));
    assert_eq!(denied.denied_by, ["each"]);
    let (retry, reset) = (denied.retry_after.unwrap(), denied.reset_after.unwrap());
    assert!(retry == reset && (0..=WINDOW_SECS as i64).contains(&retry.seconds), "{denied:?}");
    assert!(denied.denial_valid_for.is_none() && !denied.degraded);
    let central = node.decided().1;
    for _ in 0..50 {
        assert!(!charge(&mut client, "c", 1).await.allowed);
    }
    assert_eq!(node.decided().1, central, "the node knows that nothing is left");
    let never = charge(&mut client, "c", 13).await;
    assert!(!never.allowed && never.retry_after.is_none(), "{never:?}");
}

/// Peeks, refunds, debits and resets are of the counter in Redis, which counts what the node owes first.
#[tokio::test]
async fn other_calls_are_of_the_counter_in_redis() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, 12, "{ max_over: 8, nodes: 2, sync: 10s }");
    let mut client = node.client().await;
    for _ in 0..5 {
        assert!(charge(&mut client, "c", 1).await.allowed);
    }
    let peek = ShouldAllowRequest { peek: true, cost: Some(8), ..ask("r", "c") };
    let peeked = client.should_allow(peek).await.unwrap().into_inner();
    assert_eq!((peeked.allowed, peeked.remaining, peeked.approximate), (false, Some(7), true));
    assert_eq!(counted(&redis), 5, "what the node owed was counted with it");
    let some = ShouldAllowRequest { at_most: true, cost: Some(9), ..ask("r", "c") };
    let granted = client.should_allow(some).await.unwrap().into_inner();
    assert_eq!((granted.allowed, granted.granted, granted.remaining), (true, Some(7), Some(0)));
    assert!(!charge(&mut client, "c", 1).await.allowed);
    let mut admin = AdminServiceClient::new(node.channel().await);
    let refund = |id: &str| RefundRequest {
        resource: "r".to_owned(),
        consumer: "c".to_owned(),
        cost: Some(2),
        id: id.to_owned(),
        ..RefundRequest::default()
    };
    client.refund(refund("")).await.unwrap();
    assert_eq!(counted(&redis), 10);
    assert!(charge(&mut client, "c", 2).await.allowed, "what was given back is there again");
    assert!(!charge(&mut client, "c", 1).await.allowed);
    let debit =
        DebitRequest { resource: "r".into(), consumer: "c".into(), cost: Some(3), ..DebitRequest::default() };
    client.debit(debit).await.unwrap();
    assert_eq!(counted(&redis), 15);
    assert!(!charge(&mut client, "c", 0).await.allowed, "nothing passes in debt");
    let reset = ResetRequest { resource: "r".into(), consumer: "c".into(), ..ResetRequest::default() };
    admin.reset(reset).await.unwrap();
    let answer = charge(&mut client, "c", 1).await;
    assert_eq!((answer.allowed, answer.remaining), (true, Some(11)));
    // What no node can know.
    let status = client.refund(refund("id")).await.unwrap_err();
    assert!(status.code() != Code::Unavailable && status.message().contains("approximate"), "{status:?}");
    let call = ShouldAllowRequest { id: "1".into(), ..ask("r", "c") };
    let status = client.should_allow(call).await.unwrap_err();
    assert!(status.message().contains("an id is not defined"), "{status:?}");
}

/// Callers of one key that come while Redis decides share its next answer, and none waits longer than its deadline.
#[tokio::test]
async fn callers_of_one_key_share_a_call() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, 1_000, "{ max_over: 1, nodes: 2, sync: 10s }");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut client = node.client().await;
        callers.spawn(async move {
            for _ in 0..100 {
                assert!(charge(&mut client, "hot", 1).await.allowed);
            }
        });
    }
    callers.join_all().await;
    let counters = redis.keys();
    println!("{counters:?}");
    let (own, central) = node.decided();
    assert_eq!(own + central, 800);
    let answer = charge(&mut node.client().await, "hot", 200).await;
    assert_eq!((answer.allowed, answer.remaining), (true, Some(0)), "all were counted once");
}
