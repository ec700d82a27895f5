//! Calls that wait for items.

use std::time::Duration;

use tokio::task::JoinSet;
use weir_proto::v1::AckRequest;

use super::service::{client, put, server, take};
use crate::support::stores;
use crate::support::{SOON, eventually_async};

/// An item wakes the calls that wait on this node, on any worker; nobody polls for that long.
#[tokio::test]
async fn an_item_wakes_a_call_that_waits() {
    for store in [stores::memory(), stores::redis()] {
        let server = server(store);
        let mut waiting = JoinSet::new();
        for _ in 0..3 {
            let mut worker = client(&server).await;
            waiting.spawn(async move { worker.take(take("jobs", 1, Some(60))).await.unwrap().into_inner() });
        }
        let waits = async || server.get("/metrics").1.contains("weir_queue_waiting_takes{queue=\"jobs\"} 3");
        eventually_async(SOON, "three calls wait", waits).await;
        let mut producer = client(&server).await;
        producer.enqueue(put("jobs", &["a", "b", "c"])).await.unwrap();
        let mut payloads = Vec::new();
        while let Some(taken) = waiting.join_next().await {
            payloads.extend(taken.unwrap().items.into_iter().map(|item| item.payload));
        }
        payloads.sort();
        assert_eq!(payloads, [b"a", b"b", b"c"]);
    }
}

/// A node that made no call itself asks the store, also after a restart.
#[tokio::test]
async fn each_node_knows_the_depth_that_others_left() {
    let secret = weir_core::key::KeySecret::random();
    let config = |base: weir_config::Config| weir_config::Config { key_secret: Some(secret), ..base };
    let (one, other) = (server_with(config), server_with(config));
    let shows = |server: &crate::support::server::Server, depth: u64| {
        server.get("/metrics").1.contains(&format!("weir_queue_depth{{queue=\"jobs\"}} {depth}\n"))
    };
    client(&one).await.enqueue(put("jobs", &["a", "b"])).await.unwrap();
    eventually_async(SOON, "the other node knows of both", async || shows(&other, 2)).await;
    let ids = client(&other).await.take(take("jobs", 9, None)).await.unwrap().into_inner().items;
    let ids = ids.into_iter().map(|item| item.id).collect();
    let ack = AckRequest { queue: "jobs".to_owned(), ids, ..AckRequest::default() };
    client(&other).await.ack(ack).await.unwrap();
    eventually_async(SOON, "the first node knows that they are gone", async || shows(&one, 0)).await;
}

/// Items of another node come by polling.
#[tokio::test]
async fn an_item_of_another_node_is_found() {
    let secret = weir_core::key::KeySecret::random();
    let config = |base: weir_config::Config| weir_config::Config { key_secret: Some(secret), ..base };
    let (one, other) = (server_with(config), server_with(config));
    let mut worker = client(&one).await;
    let waiting =
        tokio::spawn(async move { worker.take(take("jobs", 1, Some(60))).await.unwrap().into_inner() });
    let waits = async || one.get("/metrics").1.contains("weir_queue_waiting_takes{queue=\"jobs\"} 1");
    eventually_async(SOON, "the call waits", waits).await;
    client(&other).await.enqueue(put("jobs", &["a"])).await.unwrap();
    assert_eq!(waiting.await.unwrap().items.len(), 1);
}

fn server_with(
    change: impl Fn(weir_config::Config) -> weir_config::Config,
) -> crate::support::server::Server {
    super::service::server_of(change(super::service::configured(stores::redis())))
}

/// A call that its caller has given up takes nothing, and no longer counts.
#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_line() {
    let server = server(stores::memory());
    let mut first = client(&server).await;
    let given_up =
        tokio::time::timeout(Duration::from_millis(100), first.take(take("jobs", 1, Some(60)))).await;
    assert!(given_up.is_err());
    let none = async || server.get("/metrics").1.contains("weir_queue_waiting_takes{queue=\"jobs\"} 0");
    eventually_async(SOON, "nobody waits", none).await;
    let mut second = client(&server).await;
    second.enqueue(put("jobs", &["a"])).await.unwrap();
    let taken = second.take(take("jobs", 1, Some(60))).await.unwrap().into_inner();
    let ids = taken.items.into_iter().map(|item| item.id).collect();
    let ack = AckRequest { tokens: Vec::new(), queue: "jobs".to_owned(), ids, outcome: String::new() };
    assert_eq!(second.ack(ack).await.unwrap().into_inner().acked, [true]);
}

/// A node that goes away answers those who wait, and does not wait for their wait.
#[tokio::test]
async fn a_shutdown_ends_the_wait() {
    let mut server = server(stores::memory());
    let mut worker = client(&server).await;
    let waiting = tokio::spawn(async move { worker.take(take("jobs", 1, Some(300))).await });
    let waits = async || server.get("/metrics").1.contains("weir_queue_waiting_takes{queue=\"jobs\"} 1");
    eventually_async(SOON, "the call waits", waits).await;
    server.stop();
    let answer = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(answer.items, []);
    server.ended().unwrap();
}
