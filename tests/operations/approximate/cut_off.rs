//! Nodes that are cut off from Redis, and masters of a cluster that are killed and frozen: what three nodes admit is
//! printed beside its bound.

use std::time::Instant;

use super::*;
use crate::support::{Cluster, Proxy, ProxyMode};

const LIMIT: u64 = 200;
const OVER: u64 = 20;
const APPROXIMATE: &str = "{ max_over: 20, nodes: 3, sync: 10ms }";

/// Longer than an answer takes on a busy machine.
const DEADLINE: Duration = Duration::from_millis(500);

/// Answers of the policy are not part of the bound.
fn is_admitted(answer: &ShouldAllowResponse) -> bool {
    answer.allowed && answer.approximate && !answer.degraded
}

/// Each node is cut off at other times and in other ways, again and again.
#[tokio::test]
async fn three_nodes_that_are_cut_off_keep_the_bound() {
    let redis = RedisServer::start();
    let proxies = [(); 3].map(|()| Proxy::start(redis.port()));
    let node = |proxy: &Proxy| {
        let store = format!("nodes: [\"{}\"], deadline: 100ms", proxy.url());
        Node::on(&store, LIMIT, APPROXIMATE, "deny").having_its_place()
    };
    let nodes = proxies.each_ref().map(node);
    let modes = [ProxyMode::Pass, ProxyMode::BlackHole, ProxyMode::Drop];
    let (admitted, degraded) = within_a_window(&redis, async |consumer: &str| {
        let (mut admitted, mut degraded) = (0, 0);
        let mut clients = Vec::new();
        for node in &nodes {
            clients.push(node.client().await);
        }
        for round in 0..9 {
            for (node, proxy) in proxies.iter().enumerate() {
                proxy.set_mode(modes[(round + node * (1 + round / 3)) % 3]);
            }
            for call in 0..60 {
                let answer = charge(&mut clients[call % 3], consumer, 1).await;
                admitted += u64::from(is_admitted(&answer));
                degraded += u64::from(answer.degraded);
            }
        }
        // With Redis the nodes admit what is left of the limit.
        proxies.iter().for_each(|proxy| proxy.set_mode(ProxyMode::Pass));
        for client in &mut clients {
            let (mut in_a_row, begun) = (0, Instant::now());
            while in_a_row < 5 {
                assert!(begun.elapsed() < SOON, "{admitted} admitted");
                let answer = charge(client, consumer, 1).await;
                admitted += u64::from(is_admitted(&answer));
                in_a_row = if answer.allowed || answer.degraded { 0 } else { in_a_row + 1 };
            }
        }
        (admitted, degraded)
    })
    .await;
    println!("admitted {admitted}, at most {LIMIT} and {OVER}; {degraded} answered by the policy");
    assert!(admitted <= LIMIT + OVER, "{admitted}");
    assert!(degraded > 0, "their shares were used up");
}

/// One master of a cluster is killed and another one frozen, while three nodes use up keys of all masters. A replica that
/// is promoted may lack what its master has counted last, which may then be admitted once more.
#[tokio::test]
async fn masters_that_are_killed_and_frozen_add_no_more_than_they_lose() {
    const CONSUMERS: usize = 12;
    let cluster = Cluster::start(3, 1);
    let store =
        format!("topology: cluster, nodes: {:?}, deadline: {}ms", cluster.urls(), DEADLINE.as_millis());
    let nodes = [(); 3].map(|()| Node::on(&store, LIMIT, APPROXIMATE, "deny").having_its_place());
    let mut clients = Vec::new();
    for node in &nodes {
        clients.push(node.client().await);
    }
    let mut admitted = [0_u64; CONSUMERS];
    let mut round = async |calls: usize| {
        let mut degraded = 0;
        for client in &mut clients {
            for (consumer, admitted) in admitted.iter_mut().enumerate() {
                for _ in 0..calls {
                    let answer = charge(client, &format!("consumer-{consumer}"), 1).await;
                    *admitted += u64::from(is_admitted(&answer));
                    degraded += usize::from(answer.degraded);
                }
            }
        }
        degraded
    };
    assert_eq!(round(10).await, 0);
    let (first, second) = (cluster.nodes()[0].port(), cluster.nodes()[1].port());
    cluster.kill_primary_of(0);
    round(10).await;
    cluster.wait_for_promotion(0, first, SOON);
    cluster.nodes()[1].freeze();
    round(10).await;
    cluster.wait_for_promotion(8_000, second, SOON);
    cluster.nodes()[1].thaw();
    let started = Instant::now();
    let at_the_end = |degraded: usize, admitted: u64| {
        assert!(started.elapsed() < 2 * SOON, "{degraded} answers without Redis, {admitted} admitted");
    };
    // Until all keys are used up: the nodes deny without asking Redis.
    loop {
        let (_, before) = all_decided(&nodes);
        let degraded = round(15).await;
        let is_used_up = all_decided(&nodes).1 == before;
        if degraded == 0 && is_used_up {
            break;
        }
        at_the_end(degraded, before);
    }
    let most = admitted.iter().max().unwrap();
    println!(
        "admitted at most {most} of a key, {admitted:?}; the bound is {LIMIT} and {OVER}, and as much for each loss"
    );
    // One loss adds a limit, a `max_over`, and a share for each place.
    let share = OVER / 2;
    assert!(*most <= 2 * (LIMIT + OVER) + 3 * share, "{admitted:?}");
    assert!(admitted.iter().all(|&one| one >= LIMIT / 2), "keys are used up: {admitted:?}");
}

/// While the breaker is open the policy answers at once: Redis is not waited for.
#[tokio::test]
async fn the_policy_answers_without_a_wait_while_the_breaker_is_open() {
    const CALLS: u32 = 40;
    let redis = RedisServer::start();
    let store = format!("nodes: [\"{}\"], deadline: {}ms", redis.url(), DEADLINE.as_millis());
    let node = Node::on(&store, 100, "{ max_over: 10, nodes: 2, sync: 10s }", "deny").having_its_place();
    let mut client = node.client().await;
    assert!(charge(&mut client, "c", 1).await.allowed);
    redis.freeze();
    let is_open = || node.metric(&format!("weir_store_breaker_open{{node=\"{}\"}}", redis.addr())) == 1;
    let begun = Instant::now();
    while !is_open() {
        assert!(begun.elapsed() < SOON, "the breaker opens");
        charge(&mut client, "c", 1).await;
    }
    let begun = Instant::now();
    for _ in 0..CALLS {
        let answer = charge(&mut client, "d", 1).await;
        assert!(answer.degraded && !answer.allowed, "Redis decides the first call of a key: {answer:?}");
    }
    println!(
        "{CALLS} answers without Redis took {:?}; a wait for it takes {DEADLINE:?} each",
        begun.elapsed()
    );
    assert!(begun.elapsed() < DEADLINE * CALLS / 4);
}
