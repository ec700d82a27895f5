//! Redis fails: a node admits what is left of its share, and then the policy answers.

use super::*;

#[tokio::test]
async fn a_node_spends_its_share_and_then_the_policy_answers() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, 100, "{ max_over: 10, nodes: 2, sync: 10s }");
    let mut client = node.client().await;
    assert!(charge(&mut client, "c", 1).await.allowed, "Redis decides the first call of the window");
    redis.freeze();
    for _ in 0..10 {
        let answer = charge(&mut client, "c", 1).await;
        assert!(answer.allowed && answer.approximate && !answer.degraded, "{answer:?}");
    }
    let answer = charge(&mut client, "c", 1).await;
    assert!(!answer.allowed && answer.degraded && !answer.approximate, "{answer:?}");
    redis.thaw();
    let mut answer = answer;
    eventually_allowed(&mut client, &mut answer).await;
    // The call that nobody was told of may have been counted, and no call was counted twice.
    let left = answer.remaining.unwrap();
    assert!((87..=88).contains(&left), "{answer:?}");
}

/// Calls until one passes.
async fn eventually_allowed(client: &mut Client, answer: &mut ShouldAllowResponse) {
    let started = std::time::Instant::now();
    while !answer.allowed {
        assert!(started.elapsed() < SOON, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        *answer = charge(client, "c", 1).await;
    }
}

/// A restart of Redis loses the places and the counters: nodes take places again, and go on.
#[tokio::test]
async fn places_are_taken_again_after_a_loss() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, 100, "{ max_over: 10, nodes: 2, sync: 10ms }");
    let mut client = node.client().await;
    for _ in 0..5 {
        assert!(charge(&mut client, "c", 1).await.allowed);
    }
    redis.flush_all();
    let place = || redis.keys().iter().any(|key| key.contains("}NA10,2,1000000s:api"));
    eventually(SOON, "it has a place again", place);
    let answer = charge(&mut client, "c", 1).await;
    assert!(answer.allowed, "{answer:?}");
    for key in redis.keys().iter().filter(|key| key.contains("}A")) {
        assert!(redis.pttl(key) > 0, "{key} has an expiry");
    }
}

/// With `local` the node decides with its part of the limit when its share is spent.
#[tokio::test]
async fn after_its_share_a_node_decides_with_its_part_of_the_limit() {
    let redis = RedisServer::start();
    let store = format!("nodes: [\"{}\"], deadline: 2s", redis.url());
    let policy = "{ local: { share: 1/2 } }";
    let node = Node::on(&store, 100, "{ max_over: 10, nodes: 2, sync: 10s }", policy).having_its_place();
    let mut client = node.client().await;
    assert!(charge(&mut client, "c", 1).await.allowed);
    redis.freeze();
    for _ in 0..10 {
        assert!(!charge(&mut client, "c", 1).await.degraded);
    }
    let answer = charge(&mut client, "c", 1).await;
    assert!(answer.allowed && answer.degraded && answer.local && !answer.approximate, "{answer:?}");
    assert_eq!(
        (answer.limit, answer.remaining),
        (Some(50), Some(48)),
        "half of what Redis told last, rounded up"
    );
}
