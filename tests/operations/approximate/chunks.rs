//! Nodes that take chunks: a hot key keeps to its bound and costs few calls, a node that ends gives back what it has, a surplus node
//! decides at the full limit, and an outage is survived on what is left.

use std::time::Instant;

use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::{RefundRequest, ResetRequest};

use super::*;

const LIMIT: u64 = 600;

/// What Redis has charged of the only key, which is a window.
fn charged(redis: &RedisServer) -> u64 {
    let key = redis.keys().into_iter().find(|key| key.contains("}AW")).expect("it has a state");
    let state: Vec<u8> = redis.query(&["GET", &key]);
    f64::from_le_bytes(state[8..16].try_into().unwrap()) as u64
}

/// Calls of script, which decide and take chunks, that Redis has executed.
fn script_calls(redis: &RedisServer) -> u64 {
    let stats: String = redis.query(&["INFO", "commandstats"]);
    let of = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    of("evalsha") + of("eval")
}

/// Three nodes, with four callers each, use up one window. Never more than the limit passes.
#[tokio::test]
async fn a_hot_window_keeps_to_its_limit_and_costs_few_calls() {
    let redis = RedisServer::start();
    let nodes: Vec<Node> =
        (0..3).map(|_| Node::with_place(&redis, LIMIT, "{ chunk: 40, nodes: 3, max_age: 10s }")).collect();
    let before = script_calls(&redis);
    let (passed, calls) =
        within_a_window(&redis, async |consumer: &str| all_use_up(&nodes, consumer).await).await;
    let asked = script_calls(&redis) - before;
    println!("{passed} of {calls} calls passed, limit {LIMIT}; {asked} script calls, heartbeats among them");
    assert!(passed <= LIMIT, "{passed}");
    assert!(passed > LIMIT - 3 * 40, "{passed}: what nodes took was spent");
    let (by_node, by_redis) = all_decided(&nodes);
    for node in &nodes {
        assert_eq!(node.metric("weir_approximate_max_over{strategy=\"api\"}"), 0);
        assert!(
            !node.serve.get("/metrics").contains("weir_approximate_over_admitted{"),
            "nothing measures it"
        );
    }
    println!("{by_node} decided by nodes, {by_redis} by Redis");
    assert_eq!(by_node + by_redis, calls);
    assert!(by_node > by_redis && asked < calls / 2, "{by_node} {by_redis} {asked}");
}

/// The same of a bucket that goes on filling.
#[tokio::test]
async fn a_hot_bucket_keeps_to_its_bound() {
    let (burst, rate, chunk) = (300, 500, 50);
    let redis = RedisServer::start();
    let limit = format!("token_bucket: {{ rate: {rate}/s, burst: {burst} }}");
    let approximate = format!("{{ chunk: {chunk}, nodes: 3 }}");
    let store = format!("nodes: [\"{}\"], deadline: 2s", redis.url());
    let start = || Node::of(&store, &limit, &approximate, "deny").having_its_place();
    let nodes: Vec<Node> = (0..3).map(|_| start()).collect();
    let mut callers = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for node in &nodes {
        for _ in 0..2 {
            let mut client = node.client().await;
            callers.spawn(async move {
                let (mut passed, mut calls) = (0, 0);
                while begun.elapsed() < Duration::from_millis(2_500) {
                    let answer = charge(&mut client, "hot", 1).await;
                    assert!(answer.approximate && !answer.degraded, "{answer:?}");
                    (passed, calls) = (passed + u64::from(answer.allowed), calls + 1);
                }
                (passed, calls)
            });
        }
    }
    let all = callers.join_all().await;
    let (passed, calls) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let exact = burst + rate * begun.elapsed().as_micros() as u64 / 1_000_000;
    println!("{passed} of {calls} calls passed; exact {exact}, and at most {} beyond", 3 * chunk);
    assert!(passed <= exact + 3 * chunk, "{passed}");
    for node in &nodes {
        assert_eq!(node.metric("weir_approximate_max_over{strategy=\"api\"}"), 3 * chunk);
    }
}

/// What is left of a chunk is given back when it is old, and when the node ends.
#[tokio::test]
async fn what_is_left_is_given_back() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, LIMIT, "{ chunk: 100, nodes: 2, max_age: 100ms }");
    let mut client = node.client().await;
    for _ in 0..5 {
        assert!(charge(&mut client, "only", 1).await.allowed);
    }
    eventually(SOON, "what is left was given back", || charged(&redis) == 5);
    assert!(node.metric("weir_approximate_pushes_total{strategy=\"api\"}") > 0);
    let other = RedisServer::start();
    let approximate = "{ chunk: 100, nodes: 2, max_age: 10s }";
    let mut ends = Node::with_place(&other, LIMIT, approximate);
    let _stays = Node::with_place(&other, LIMIT, approximate);
    let waits = Node::start(&other, LIMIT, approximate);
    eventually(SOON, "it has no place", || waits.serve.get("/readyz").contains("it has no place"));
    let mut client = ends.client().await;
    for left in (LIMIT - 21..LIMIT).rev() {
        let answer = charge(&mut client, "only", 1).await;
        assert_eq!((answer.allowed, answer.remaining, answer.approximate), (true, Some(left), true));
    }
    assert_eq!((ends.decided(), charged(&other)), ((20, 1), 101));
    drop(client);
    ends.serve.process.signal("TERM");
    eventually(SOON, "it has ended", || ends.serve.process.exited().is_some());
    assert_eq!(charged(&other), 21);
    let has_place = || waits.metric("weir_approximate_has_place{strategy=\"api\"}") == 1;
    eventually(SOON, "the next one has the place", has_place);
}

/// A node without a place decides at the full limit, and says so.
#[tokio::test]
async fn a_surplus_node_decides_at_the_full_limit() {
    let redis = RedisServer::start();
    let approximate = "{ chunk: 10, nodes: 2, max_age: 10s }";
    let _nodes = [Node::with_place(&redis, LIMIT, approximate), Node::with_place(&redis, LIMIT, approximate)];
    let surplus = Node::start(&redis, LIMIT, approximate);
    let says_so = || {
        let page = surplus.serve.get("/readyz");
        page.contains("\nready\n") && page.contains("at the full limit, because it has no place")
    };
    eventually(SOON, "it says that it has no place", says_so);
    let passed =
        within_a_window(&redis, async |consumer: &str| use_up(surplus.client().await, consumer, 5).await.0);
    assert_eq!(passed.await, LIMIT);
    assert_eq!(surplus.decided().0, 0, "Redis decides all of its calls");
}

/// A node spends what it has while Redis is away. Then the policy answers.
#[tokio::test]
async fn what_is_left_is_spent_in_an_outage() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, LIMIT, "{ chunk: 10, nodes: 2, max_age: 10s }");
    let mut client = node.client().await;
    assert!(charge(&mut client, "c", 1).await.allowed, "Redis decides the first call");
    redis.freeze();
    for _ in 0..10 {
        let answer = charge(&mut client, "c", 1).await;
        assert!(answer.allowed && answer.approximate && !answer.degraded, "{answer:?}");
    }
    let answer = charge(&mut client, "c", 1).await;
    assert!(!answer.allowed && answer.degraded && !answer.approximate, "{answer:?}");
    redis.thaw();
}

/// All but charges is of the limit in Redis, as under an exact strategy, ids too.
#[tokio::test]
async fn other_calls_are_of_the_limit_in_redis() {
    let redis = RedisServer::start();
    let node = Node::with_place(&redis, 40, "{ chunk: 10, nodes: 2, max_age: 10s }");
    let mut client = node.client().await;
    assert!(charge(&mut client, "c", 3).await.allowed);
    let peek = ShouldAllowRequest { peek: true, cost: Some(28), ..ask("r", "c") };
    let peeked = client.should_allow(peek).await.unwrap().into_inner();
    assert_eq!((peeked.allowed, peeked.remaining), (false, Some(27)), "3 and a chunk are charged");
    for _ in 0..2 {
        let call = ShouldAllowRequest { id: "1".into(), cost: Some(2), ..ask("r", "c") };
        assert!(client.should_allow(call).await.unwrap().into_inner().allowed);
        assert_eq!(charged(&redis), 15, "once");
    }
    // More than the chunk has: what is left of it goes back with the call.
    let some = ShouldAllowRequest { at_most: true, cost: Some(99), ..ask("r", "c") };
    let granted = client.should_allow(some).await.unwrap().into_inner();
    assert_eq!((granted.allowed, granted.granted, granted.remaining), (true, Some(35), Some(0)));
    let denied = charge(&mut client, "c", 1).await;
    assert!(
        !denied.allowed && denied.retry_after.is_some() && denied.denial_valid_for.is_none(),
        "{denied:?}"
    );
    let refund = RefundRequest {
        resource: "r".to_owned(),
        consumer: "c".to_owned(),
        cost: Some(2),
        ..RefundRequest::default()
    };
    client.refund(refund).await.unwrap();
    assert!(charge(&mut client, "c", 2).await.allowed, "the node has forgotten the denial");
    assert!(!charge(&mut client, "c", 1).await.allowed);
    let mut admin = AdminServiceClient::new(node.channel().await);
    let reset = ResetRequest { resource: "r".into(), consumer: "c".into(), ..ResetRequest::default() };
    admin.reset(reset).await.unwrap();
    let answer = charge(&mut client, "c", 1).await;
    assert_eq!((answer.allowed, answer.remaining), (true, Some(39)));
    let never = charge(&mut client, "c", 41).await;
    assert!(!never.allowed && never.retry_after.is_none(), "{never:?}");
}
