//! A cluster's node decides over all of its slots in one script call, and what is not its own is asked for
//! elsewhere.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use weir_config::{Config, StoreConfig, Topology};
use weir_proto::v1::ShouldAllowBatchRequest;
use weir_store::StoreError;
use weir_store::redis::RedisStore;

use super::{charge, config, shared};
use crate::support::command::WEIR;
use crate::support::server::{self, Server, ask_under};
use crate::support::{Cluster, Process, RedisServer, SOON, eventually, eventually_async, scratch, watched};

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
    let bad = keys.keys().find(|key| key.ends_with("|Rresource7")).unwrap();
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
    let slot = cluster.slot_of(keys.keys().find(|key| key.ends_with("|Rresource3")).unwrap());
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
    allow_trials(&cluster, false);
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

/// A refused trial is repeated: calls span slots as soon as the node allows it, on the same connections.
#[tokio::test]
async fn a_node_that_allows_it_later_gets_one_call_from_then_on() {
    let cluster = Cluster::start(3, 0);
    allow_trials(&cluster, false);
    let store = watched(&shared(&config(cluster.urls(), Topology::Cluster))).await;
    let mut charged = everyone(&store, 0).await;
    let refused = || cluster.nodes().iter().all(|node| !acl_log(node).is_empty());
    eventually(SOON, "every node has refused a trial", refused);
    let before = script_calls(&cluster);
    charged = everyone(&store, charged).await;
    assert!(script_calls(&cluster) - before > 40, "most of sixty resources have a slot of their own");
    let connections = connections(&cluster);
    allow_trials(&cluster, true);
    together(&store, &cluster, charged).await;
    // None is new. One of a probe may have ended meanwhile.
    let now = self::connections(&cluster);
    let are_same = now
        .iter()
        .zip(&connections)
        .all(|(now, before)| !now.is_empty() && now.iter().all(|connection| before.contains(connection)));
    assert!(are_same, "the connections are the same: {now:?} of {connections:?}");
}

/// Every worker has a connection of its own, and tries for itself. The log has one line of a node, and one when it
/// is over.
#[test]
fn the_log_says_once_for_each_node_that_it_gets_more_calls_and_why() {
    let cluster = Cluster::start(3, 0);
    allow_trials(&cluster, false);
    let directory = scratch::dir("spans");
    let (file, log) = (directory.path().join("weir.yaml"), directory.path().join("log"));
    let nodes = format!("{:?}", cluster.urls());
    let strategy = "a: { limits: [{ name: l, per: [resource], token_bucket: { rate: 1/s, burst: 9 } }] }";
    let redis = format!("{{ topology: cluster, nodes: {nodes}, deadline: 10s }}");
    let text = format!("store: {{ key_secret: s, redis: {redis} }}\nstrategies: {{ {strategy} }}\n");
    std::fs::write(&file, text).unwrap();
    let mut command = Process::command(WEIR);
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", "2"]);
    command.args(["--config", file.to_str().unwrap()]).stdout(Stdio::null());
    command.stderr(File::create(&log).unwrap());
    let _weir = Process::spawn(command).unwrap();
    let lines = |of: &str| -> Vec<String> {
        let log = std::fs::read_to_string(&log).unwrap();
        log.lines().filter(|line| line.contains(of)).map(str::to_owned).collect()
    };
    let refused = || cluster.nodes().iter().all(|node| refused_trials(node) >= 4);
    eventually(SOON, "both workers have tried twice", refused);
    let warned = lines("sending one script call per slot");
    assert_eq!(warned.len(), 3, "{warned:#?}");
    for node in cluster.nodes() {
        let line = warned.iter().find(|line| line.contains(&node.addr())).expect("a line of each node");
        assert!(line.contains("WARN") && line.contains("reason"), "{line}");
        assert!(line.contains("grant the user +cluster|countkeysinslot"), "{line}");
    }
    allow_trials(&cluster, true);
    let over = || lines("batching over slots recovered");
    eventually(SOON, "a line of each node", || over().len() == 3);
    assert!(over().iter().all(|line| line.contains("INFO")), "{:#?}", over());
    assert_eq!(lines("sending one script call per slot").len(), 3);
}

/// Returns the number of trials that the node has refused.
fn refused_trials(node: &RedisServer) -> u64 {
    node.command_stat("cluster|countkeysinslot", "rejected_calls")
}

#[tokio::test]
async fn calls_for_one_slot_are_counted_while_there_are_any() {
    let cluster = Cluster::start(3, 0);
    allow_trials(&cluster, false);
    let store = StoreConfig::Redis(config(cluster.urls(), Topology::Cluster));
    let server = Server::start(Config { store, ..server::config() });
    eventually(SOON, "ready", || server.get("/readyz").0 == 200);
    let counted = || server.metric("weir_redis_single_slot_calls_total");
    let mut client = server.client().await;
    let mut round = 0;
    let mut batch = async || {
        round += 1;
        let resources = (0..RESOURCES).map(|i| format!("resource{i} of {round}"));
        let requests = resources.map(|resource| ask_under("burst", &resource, "c")).collect();
        let before = (script_calls(&cluster), counted());
        client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
        (script_calls(&cluster) - before.0, counted() - before.1)
    };
    // The probe of each second is a script call too, and not one of a decision: a batch that meets one is repeated.
    let is_counted = async || {
        let (asked, counted) = batch().await;
        asked > 40 && counted == asked
    };
    eventually_async(SOON, "each call of a batch is counted", is_counted).await;
    allow_trials(&cluster, true);
    eventually_async(SOON, "one call for each node, not counted", async || batch().await == (3, 0)).await;
}

fn allow_trials(cluster: &Cluster, allowed: bool) {
    let right = if allowed { "+cluster|countkeysinslot" } else { "-cluster|countkeysinslot" };
    for node in cluster.nodes() {
        node.cli(&["ACL", "SETUSER", "default", right]);
    }
}

fn acl_log(node: &RedisServer) -> Vec<redis::Value> {
    node.query(&["ACL", "LOG"])
}

/// The ids that the nodes have given to the connections that decisions take.
fn connections(cluster: &Cluster) -> Vec<Vec<String>> {
    let of = |node: &RedisServer| {
        let list: String = node.query(&["CLIENT", "LIST"]);
        let decide = list.lines().filter(|line| line.contains("cmd=eval"));
        decide.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    cluster.nodes().iter().map(of).collect()
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

/// Returns the number of script calls by name, on all nodes.
fn script_calls(cluster: &Cluster) -> u64 {
    cluster.nodes().iter().map(RedisServer::script_calls).sum()
}
