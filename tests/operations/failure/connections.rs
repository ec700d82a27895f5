//! Connections are there before a call needs them: at the start, and after the server has closed one.

use std::time::Duration;

use redis::Connection;
use weir_config::Topology;

use super::{allow, config, shared, store_unwatched};
use crate::support::{Cluster, RedisServer, SOON, eventually_async, watched};

/// Longer than a connection that was never any good is kept from being dialled again.
const A_WHILE: Duration = Duration::from_millis(1_100);

#[tokio::test]
async fn they_do_not_wait_for_the_first_call() {
    let redis = RedisServer::start();
    let mut own = redis.connection();
    let before = taken(&mut own);
    let _store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    eventually_async(SOON, "a connection", async || taken(&mut own) > before).await;
}

/// In a cluster to every node, as soon as it is known.
#[tokio::test]
async fn every_node_of_a_cluster_has_one() {
    let cluster = Cluster::start(3, 0);
    let shared = shared(&config(cluster.urls(), Topology::Cluster));
    let mut own: Vec<Connection> = cluster.nodes().iter().map(RedisServer::connection).collect();
    // The watcher has one to one node at a time.
    let mut all_have = |count| own.iter_mut().all(|own| clients(own) >= count);
    // Its worker started before the first node answered CLUSTER SLOTS.
    let _early = watched(&shared).await;
    eventually_async(SOON, "ours, and those of a worker that began early", async || all_have(2)).await;
    let _late = shared.store();
    eventually_async(SOON, "those of a worker that began late", async || all_have(3)).await;
}

/// Servers and proxies close idle connections. The first caller after that once got an error, as if Redis were down.
#[tokio::test]
async fn one_that_was_closed_while_idle_is_replaced() {
    let redis = RedisServer::start();
    let store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    assert_eq!(allow(&store, "r").await, Ok(true));
    tokio::time::sleep(A_WHILE).await;
    let mut own = redis.connection();
    let before = taken(&mut own);
    let mut kill = redis::cmd("CLIENT");
    kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_eq!(kill.query::<u64>(&mut own), Ok(1));
    eventually_async(SOON, "another connection", async || taken(&mut own) > before).await;
    assert_eq!(allow(&store, "r").await, Ok(true), "the first call after that");
}

/// The same where the server itself was away for a moment.
#[tokio::test]
async fn one_to_a_server_that_was_restarted_while_idle_is_replaced() {
    let redis = RedisServer::start();
    let store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    assert_eq!(allow(&store, "r").await, Ok(true));
    tokio::time::sleep(A_WHILE).await;
    redis.kill();
    redis.restart();
    let mut own = redis.connection();
    eventually_async(SOON, "another connection", async || clients(&mut own) > 1).await;
    assert_eq!(allow(&store, "r").await, Ok(true), "the first call after that");
}

/// Returns the number of connections that the server has ever taken.
pub(super) fn taken(own: &mut Connection) -> u64 {
    info(own, "stats", "total_connections_received")
}

fn clients(own: &mut Connection) -> u64 {
    info(own, "clients", "connected_clients")
}

fn info(own: &mut Connection, section: &str, name: &str) -> u64 {
    let section: redis::InfoDict = redis::cmd("INFO").arg(section).query(own).unwrap();
    section.get(name).unwrap()
}
