//! Several nodes: the bound on a hot key, a node that is killed, one that ends, and one too many.

use super::*;
use crate::support::Cluster;

const LIMIT: u64 = 400;

/// Three nodes, with four callers each, use up one key. What they admit above the limit is printed beside the bound.
#[tokio::test]
async fn a_hot_key_keeps_to_the_bound_and_costs_few_calls() {
    let redis = RedisServer::start();
    let nodes: Vec<Node> =
        (0..3).map(|_| Node::with_place(&redis, LIMIT, "{ max_over: 20, nodes: 3, sync: 10s }")).collect();
    let (passed, calls) =
        within_a_window(&redis, async |consumer: &str| all_use_up(&nodes, consumer).await).await;
    let (by_node, by_redis) = all_decided(&nodes);
    println!("{calls} calls: {by_node} decided by nodes, {by_redis} by Redis");
    println!("{} above the limit of {LIMIT}, at most 20", passed - LIMIT);
    assert!((LIMIT..=LIMIT + 20).contains(&passed), "{passed}");
    assert!(by_node > 4 * by_redis, "a share of 10 saves most calls: {by_node} {by_redis}");
    // Redis has measured it, and nodes hear of it with their next push.
    let over = |node: &Node| node.metric("weir_approximate_over_admitted{strategy=\"api\"}");
    for node in &nodes {
        assert!(over(node) <= node.metric("weir_approximate_max_over{strategy=\"api\"}"));
        assert_eq!(node.metric("weir_approximate_max_over{strategy=\"api\"}"), 20);
    }
}

/// A node is killed while it owes something, and another one comes: it gets no place, and Redis decides its calls at a
/// smaller limit.
#[tokio::test]
async fn a_node_is_killed_and_the_next_one_has_no_place() {
    let redis = RedisServer::start();
    let approximate = "{ max_over: 10, nodes: 2, sync: 10s }";
    let mut nodes =
        vec![Node::with_place(&redis, LIMIT, approximate), Node::with_place(&redis, LIMIT, approximate)];
    let passed = within_a_window(&redis, async |consumer: &str| {
        let mut passed = 0;
        for node in &nodes {
            let mut client = node.client().await;
            for _ in 0..9 {
                passed += u64::from(charge(&mut client, consumer, 1).await.allowed);
            }
        }
        passed
    })
    .await;
    assert_eq!(passed, 18);
    nodes[0].serve.process.kill();
    let surplus = Node::start(&redis, LIMIT, approximate);
    let note = || surplus.serve.get("/readyz");
    // It may hear of the places before its monitor has found Redis: then it is not ready yet.
    let says_so = |page: &str| page.contains("\nready\n") && page.contains("it has no place");
    eventually(SOON, "it is ready and says that it has no place", || says_so(&note()));
    let page = note();
    assert!(page.contains("strategy `api`"), "{page}");
    assert!(page.contains("all 2 places") && page.contains("unless more than 2 nodes run"), "{page}");
    let (smaller, own, alone) = within_a_window(&redis, async |consumer: &str| {
        let consumer = format!("{consumer}-of-both");
        let smaller = use_up(surplus.client().await, &consumer, 5).await.0;
        let own = use_up(nodes[1].client().await, &consumer, 5).await.0;
        (smaller, own, use_up(nodes[1].client().await, &format!("{consumer}-alone"), 5).await.0)
    })
    .await;
    assert_eq!((smaller, own), (LIMIT - 10, 10), "the node with a place admits the rest");
    assert_eq!(alone, LIMIT);
    assert_eq!(surplus.decided().0, 0, "Redis decides all of its calls");
    assert_eq!(surplus.metric("weir_approximate_has_place{strategy=\"api\"}"), 0);
}

/// A node that ends tells Redis everything, and its place is free at once.
#[tokio::test]
async fn a_node_that_ends_pushes_everything_and_frees_its_place() {
    let redis = RedisServer::start();
    let approximate = "{ max_over: 30, nodes: 2, sync: 10s }";
    let mut ends = Node::with_place(&redis, LIMIT, approximate);
    let _other = Node::with_place(&redis, LIMIT, approximate);
    let waits = Node::start(&redis, LIMIT, approximate);
    eventually(SOON, "it has no place", || waits.serve.get("/readyz").contains("it has no place"));
    let mut client = ends.client().await;
    for _ in 0..21 {
        assert!(charge(&mut client, "only", 1).await.allowed);
    }
    // Redis has decided the first one, and knows nothing of the others yet.
    assert_eq!(ends.decided(), (20, 1));
    drop(client);
    ends.serve.process.signal("TERM");
    eventually(SOON, "it has ended", || ends.serve.process.exited().is_some());
    assert_eq!(counted(&redis), 21);
    let has_place = || waits.metric("weir_approximate_has_place{strategy=\"api\"}") == 1;
    eventually(SOON, "the next one has the place", has_place);
    assert!(!waits.serve.get("/readyz").contains("it has no place"));
}

/// A node pushes its counts in the background.
#[tokio::test]
async fn what_a_node_admits_is_pushed() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, LIMIT, "{ max_over: 300, nodes: 2, sync: 10ms }");
    let mut client = node.client().await;
    for _ in 0..50 {
        assert!(charge(&mut client, "only", 1).await.allowed);
    }
    eventually(SOON, "Redis has counted all", || counted(&redis) == 50);
    assert!(node.metric("weir_approximate_pushes_total{strategy=\"api\"}") > 0);
    assert_eq!(node.decided().1, 1, "only the first call of the key waited for Redis");
    let answer = charge(&mut client, "only", 1).await;
    assert_eq!((answer.limit, answer.remaining), (Some(LIMIT), Some(LIMIT - 51)));
    assert!(answer.reset_after.is_some() && answer.retry_after.is_none());
    assert_eq!((answer.limits[0].limit, answer.limits[0].remaining), (LIMIT, LIMIT - 51));
}

/// Each key is counted by the master of its slot, whose clock the node has to know first.
#[tokio::test]
async fn keys_of_a_cluster_are_counted_by_their_masters() {
    let cluster = Cluster::start(3, 0);
    let store = format!("topology: cluster, nodes: {:?}, deadline: 2s", cluster.urls());
    let node = Node::on(&store, LIMIT, "{ max_over: 30, nodes: 2, sync: 10ms }", "deny").having_its_place();
    let mut client = node.client().await;
    for call in 0..10 {
        for consumer in 0..20 {
            let answer = charge(&mut client, &format!("consumer-{consumer}"), 1).await;
            assert!(answer.allowed && answer.approximate, "call {call}: {answer:?}");
        }
    }
    let (by_node, by_redis) = node.decided();
    println!("{by_node} decided by the node, {by_redis} by Redis");
    assert!(by_node + by_redis == 200 && by_node > 100, "{by_node} {by_redis}");
    let counters = |server: &RedisServer| -> Vec<u64> {
        let keys = server.keys();
        let own = keys.iter().filter(|key| key.contains("}A"));
        own.map(|key| server.query(&["HGET", key, "c"])).collect()
    };
    let all = || -> Vec<u64> { cluster.nodes().iter().flat_map(&counters).collect() };
    eventually(SOON, "each master has counted all calls", || all() == [10; 20]);
    assert!(cluster.nodes().iter().all(|server| !counters(server).is_empty()));
}
