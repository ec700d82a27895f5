//! A cluster's node decides over all of its slots in one script call, and what is not its own is asked for
//! elsewhere.

use std::time::Duration;

use futures_util::future::join_all;
use weir::config::Topology;
use weir::store::StoreError;
use weir::store::redis::RedisStore;

use super::{charge, config, shared};
use crate::support::{Cluster, RedisServer, SOON, eventually_async, watched};

const RESOURCES: usize = 60;

#[tokio::test]
async fn what_is_ready_for_a_node_is_one_call() {
    let cluster = Cluster::start(3, 0);
    let store = watched(&shared(&config(cluster.urls(), Topology::Cluster))).await;
    let mut charged = together(&store, &cluster, 0).await;
    for _ in 0..3 {
        let before = script_calls(&cluster);
        charged = everyone(&store, charged).await;
        assert_eq!(script_calls(&cluster) - before, 3, "one for each node");
    }
}

/// The bad key's own decision fails, and no other: not in its slot, not in its call.
#[tokio::test]
async fn one_bad_key_fails_alone() {
    let cluster = Cluster::start(3, 0);
    let store = watched(&shared(&config(cluster.urls(), Topology::Cluster))).await;
    together(&store, &cluster, 0).await;
    let keys = cluster.all_keys();
    let bad = keys.keys().find(|key| key.ends_with(":resource7")).unwrap();
    let owner = cluster.primary_of_slot(cluster.slot_of(bad));
    owner.cli(&["DEL", bad]);
    owner.cli(&["LPUSH", bad, "something else"]);
    let answers = join_all((0..RESOURCES).map(|i| charge_of(&store, i))).await;
    for (index, answer) in answers.into_iter().enumerate() {
        if index == 7 {
            assert!(
                matches!(&answer, Err(StoreError::Unreadable(why)) if why.contains("WRONGTYPE")),
                "{answer:?}"
            );
        } else {
            assert!(answer.is_ok(), "{index}: {answer:?}");
        }
    }
}

/// A slot on its way to another node, and one that has just got there, under calls that span many.
#[tokio::test]
async fn a_slot_moves_under_calls_that_span_many() {
    let cluster = Cluster::start(3, 0);
    let store = watched(&shared(&config(cluster.urls(), Topology::Cluster))).await;
    let mut charged = together(&store, &cluster, 0).await;
    let keys = cluster.all_keys();
    let slot = cluster.slot_of(keys.keys().find(|key| key.ends_with(":resource3")).unwrap());
    let owner = cluster.primary_of_slot(slot).port();
    let target = cluster.nodes().iter().position(|node| node.port() != owner).unwrap();
    let migration = cluster.begin_migration(slot, target);
    charged = everyone(&store, charged).await;
    migration.move_keys();
    charged = everyone(&store, charged).await;
    migration.finish();
    for _ in 0..5 {
        charged = everyone(&store, charged).await;
    }
}

/// A server that does not let scripts touch such keys is asked slot by slot, and answers as exactly.
#[tokio::test]
async fn where_it_is_not_allowed_each_slot_has_a_call() {
    let cluster = Cluster::start(3, 0);
    for node in cluster.nodes() {
        node.cli(&["ACL", "SETUSER", "default", "-cluster|countkeysinslot"]);
    }
    let store = watched(&shared(&config(cluster.urls(), Topology::Cluster))).await;
    let mut charged = 0;
    for _ in 0..5 {
        charged = everyone(&store, charged).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = script_calls(&cluster);
    everyone(&store, charged).await;
    assert!(script_calls(&cluster) - before > 40, "most of sixty resources have a slot of their own");
}

/// Every resource is charged 1 at once, and each answer follows from the ones before.
async fn everyone(store: &RedisStore, charged: u64) -> u64 {
    for (index, answer) in join_all((0..RESOURCES).map(|i| charge_of(store, i))).await.into_iter().enumerate()
    {
        assert_eq!(answer, Ok(100_000 - charged - 1), "resource {index}");
    }
    charged + 1
}

async fn charge_of(store: &RedisStore, index: usize) -> Result<u64, StoreError> {
    charge(store, &format!("resource{index}"), 1).await
}

/// Charges everyone until every node has been found to allow it.
async fn together(store: &RedisStore, cluster: &Cluster, charged: u64) -> u64 {
    let charged = std::cell::Cell::new(charged);
    let few = async || {
        let before = script_calls(cluster);
        charged.set(everyone(store, charged.get()).await);
        script_calls(cluster) - before == 3
    };
    eventually_async(SOON, "one call for each node", few).await;
    charged.get()
}

/// How often scripts have been called by name, on all nodes.
fn script_calls(cluster: &Cluster) -> u64 {
    cluster.nodes().iter().map(calls_of).sum()
}

fn calls_of(node: &RedisServer) -> u64 {
    let info: String = node.query(&["INFO", "commandstats"]);
    let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap_or("0");
    line.split(',').next().unwrap().parse().unwrap()
}
