//! A cluster that loses primaries and moves slots.

#[cfg(feature = "leases")]
mod leases;

use std::time::{Duration, Instant};

use weir_config::Topology;
use weir_store::redis::RedisStore;

use super::{
    DEADLINE, SLACK, allow, charge, config, decision, in_time, recovered, shared, strategy, watchful,
};
use crate::support::{Cluster, RedisServer, SOON, Stopwatch, watched};

#[tokio::test]
async fn primary_killed() {
    let cluster = Cluster::start(3, 1);
    let (store, resource, slot) = (ready(&cluster).await, "killed", slot_of(&cluster, "killed").await);
    let lost = cluster.kill_primary_of(slot);
    failover(&cluster, &store, lost, slot, resource).await;
}

/// The library's own cluster client keeps asking a frozen primary for as long as it is frozen.
#[tokio::test]
async fn primary_frozen() {
    let cluster = Cluster::start(3, 1);
    let (store, resource, slot) = (ready(&cluster).await, "frozen", slot_of(&cluster, "frozen").await);
    let lost = cluster.freeze_primary_of(slot);
    failover(&cluster, &store, lost, slot, resource).await;
}

/// The lost primary's slots are answered by the replica soon after it is promoted; all other slots are
/// answered all the time. No call waits longer than its deadline, which is short for the lost slots.
async fn failover(cluster: &Cluster, store: &RedisStore, lost: &RedisServer, slot: u16, resource: &str) {
    let others = others(slot);
    let (watch, started) = (Stopwatch::start(), Instant::now());
    let mut longest = Duration::ZERO;
    loop {
        let (_, took) = watch.time(in_time(store, resource)).await;
        longest = longest.max(took);
        for other in &others {
            let answer = allow(store, other).await;
            assert!(answer.is_ok(), "{other} is on a healthy node: {answer:?}");
        }
        if started.elapsed() > Duration::from_millis(200) && promoted_now(cluster, slot, lost) {
            break;
        }
        assert!(started.elapsed() < SOON, "no promotion");
    }
    recovered("decisions after the promotion", async || in_time(store, resource).await == Ok(true)).await;
    println!("longest wait {longest:?}");
    assert!(longest < DEADLINE + SLACK, "a caller waited {longest:?}");
}

fn promoted_now(cluster: &Cluster, slot: u16, lost: &RedisServer) -> bool {
    let survivor = cluster.nodes().iter().find(|node| node.port() != lost.port()).unwrap();
    let slots: Vec<(u16, u16, Vec<redis::Value>)> =
        survivor.query::<Vec<redis::Value>>(&["CLUSTER", "SLOTS"]).iter().map(range).collect();
    slots.iter().any(|(first, last, primary)| {
        (*first..=*last).contains(&slot)
            && matches!(primary.get(1), Some(redis::Value::Int(port)) if *port != i64::from(lost.port()))
    })
}

fn range(range: &redis::Value) -> (u16, u16, Vec<redis::Value>) {
    let redis::Value::Array(range) = range else { panic!("{range:?}") };
    let [redis::Value::Int(first), redis::Value::Int(last), redis::Value::Array(primary), ..] = &range[..]
    else {
        panic!("{range:?}")
    };
    (u16::try_from(*first).unwrap(), u16::try_from(*last).unwrap(), primary.clone())
}

#[tokio::test]
async fn slot_moved_under_load() {
    let cluster = Cluster::start(3, 0);
    let store = ready(&cluster).await;
    let slot = slot_of(&cluster, "moved").await;
    let owner = cluster.primary_of_slot(slot).port();
    let target = cluster.nodes().iter().position(|node| node.port() != owner).unwrap();
    let mut charged = 0;
    let mut step = async |what: &str| {
        for _ in 0..20 {
            charged += 1;
            assert_eq!(charge(&store, "moved", 1).await, Ok(100_000 - charged), "{what}");
        }
    };
    step("before").await;
    let migration = cluster.begin_migration(slot, target);
    step("marked as moving").await;
    migration.move_keys();
    step("keys gone, slot not yet: ASK").await;
    migration.finish();
    step("moved: MOVED").await;
    step("map refreshed").await;
}

#[tokio::test]
async fn scripts_forgotten_by_one_node() {
    let cluster = Cluster::start(3, 0);
    let store = ready(&cluster).await;
    for round in 0..30 {
        cluster.nodes()[round % 3].flush_scripts();
        for resource in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(charge(&store, resource, 1).await, Ok(100_000 - 1 - round as u64));
        }
    }
}

async fn ready(cluster: &Cluster) -> RedisStore {
    let store = watched(&shared(&watchful(cluster.urls(), Topology::Cluster))).await;
    // Their slots are on all nodes, which are all connected to then.
    let all: Vec<String> = (0..20).map(|index| format!("other{index}")).collect();
    recovered("the first decisions", async || {
        for resource in ["killed", "frozen", "moved"].into_iter().chain(all.iter().map(String::as_str)) {
            if allow(&store, resource).await.is_err() {
                return false;
            }
        }
        true
    })
    .await;
    cluster.flush_all();
    store
}

/// The slot of a resource's keys, as the cluster sees it: a charge leaves a key there.
async fn slot_of(cluster: &Cluster, resource: &str) -> u16 {
    let store = watched(&shared(&config(cluster.urls(), Topology::Cluster))).await;
    assert!(charge(&store, resource, 1).await.is_ok());
    let key = cluster.all_keys().into_keys().find(|key| key.contains(resource)).unwrap();
    let slot = cluster.slot_of(&key);
    cluster.flush_all();
    slot
}

/// Resources whose slots are on other primaries than `slot`'s.
fn others(slot: u16) -> Vec<String> {
    let strategy = strategy();
    let of = |resource: &str| {
        let mut tag = Vec::new();
        weir_core::key::write_tag(&mut tag, &strategy, &decision(&strategy, resource).subject);
        weir_core::key::slot(weir_core::key::KeySecret::BUILT_IN.hash(&tag))
    };
    let shard = |slot: u16| u32::from(slot) * 3 / 16384;
    (0..20).map(|i| format!("other{i}")).filter(|name| shard(of(name)) != shard(slot)).take(4).collect()
}
