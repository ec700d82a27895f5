//! Every master of a cluster is probed, in slots of its own; slots that move are no failures.

use std::collections::BTreeSet;

use weir_config::{RedisConfig, Sentinel, Topology};
use weir_units::Micros;

use super::{of_node, on, probe_keys, ready, says};
use crate::support::sentinels::Sentinels;
use crate::support::server::{Server, config};
use crate::support::{Cluster, RedisServer, SOON, eventually, eventually_some, redis_config};

fn clustered(cluster: &Cluster) -> RedisConfig {
    let connect_timeout = Micros::from_millis(500);
    RedisConfig { connect_timeout, ..redis_config(cluster.urls(), Topology::Cluster) }
}

#[test]
fn one_shard_alone_makes_no_node_unready() {
    let cluster = Cluster::start(3, 0);
    let needs = weir_config::Config { server: config().server, ..on(clustered(&cluster)) };
    let server = Server::start_by_the_system(needs);
    let up = |node: &RedisServer| of_node(&server, "weir_store_node_up", &node.addr());
    let [first, others @ ..] = cluster.nodes() else { panic!("three nodes") };
    eventually(SOON, "all are up", || cluster.nodes().iter().all(|node| up(node).as_deref() == Some("1")));
    assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));
    first.kill();
    let line = says(&server, &["degraded: Redis node", &first.addr(), "cannot decide", "Connection refused"]);
    assert_eq!(server.get("/readyz").0, 200, "{line}");
    assert_eq!(up(first).as_deref(), Some("0"));
    others.iter().for_each(RedisServer::kill);
    eventually(SOON, "no node can decide", || server.get("/readyz").0 == 503);
    let text = server.get("/readyz").1;
    assert!(cluster.nodes().iter().all(|node| text.contains(&node.addr())), "{text}");
}

/// While the slot of the probe's key moves, the probe takes another tag, and nothing is reported.
#[test]
fn slots_that_move_are_no_failures() {
    let cluster = Cluster::start(3, 0);
    let server = Server::start_by_the_system(on(clustered(&cluster)));
    let node = &cluster.nodes()[0];
    eventually(SOON, "all are probed", || cluster.nodes().iter().all(|node| !probe_keys(node).is_empty()));
    ready(&server);
    let tags = || -> BTreeSet<String> {
        let tag = |key: &String| key.split(['{', '}']).nth(1).unwrap().to_owned();
        cluster.nodes().iter().flat_map(probe_keys).map(|key| tag(&key)).collect()
    };
    let before = tags();
    for key in probe_keys(node) {
        let slot = cluster.slot_of(&key);
        if cluster.primary_of_slot(slot).port() != node.port() {
            continue; // two engines' keys are in one slot
        }
        let migration = cluster.begin_migration(slot, 1);
        migration.move_keys();
        let calls = script_calls(node);
        eventually(SOON, "a probe meets the slot on its way", || {
            assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));
            script_calls(node) > calls
        });
        migration.finish();
    }
    eventually(SOON, "another tag", || {
        assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));
        !tags().is_subset(&before)
    });
    assert_eq!(of_node(&server, "weir_store_node_up", &node.addr()).as_deref(), Some("1"));
}

/// Calls of scripts, refused ones included.
fn script_calls(node: &RedisServer) -> u64 {
    node.script_calls() + node.command_stat("evalsha", "rejected_calls")
}

/// A node with a single slot is probed as well.
#[test]
fn a_node_with_one_slot_is_probed() {
    let cluster = Cluster::start(3, 0);
    // Slots without an owner belong to no node until one takes them. The other two nodes must learn of it, too.
    let (first, last) = (1, 16_384 / 3 - 1);
    for node in cluster.nodes() {
        node.cli(&["CLUSTER", "DELSLOTSRANGE", &first.to_string(), &last.to_string()]);
    }
    let server = Server::start_by_the_system(on(clustered(&cluster)));
    let keys = eventually_some(SOON, "its probe", || {
        let keys = probe_keys(&cluster.nodes()[0]);
        (!keys.is_empty()).then_some(keys)
    });
    assert!(keys.iter().all(|key| cluster.slot_of(key) == 0), "{keys:?}");
    ready(&server);
}

/// After a failover the page has the new master, and no longer the old one.
#[test]
fn nodes_that_have_gone_leave_the_page() {
    let sentinels = Sentinels::start();
    let sentinel = Some(Sentinel { master_name: "zoo".to_owned(), login: None });
    let config = RedisConfig {
        sentinel,
        connect_timeout: Micros::from_millis(500),
        ..redis_config(sentinels.urls(), Topology::Sentinel)
    };
    let server = Server::start_by_the_system(on(config));
    ready(&server);
    let nodes = || -> Vec<String> {
        let page = server.get("/metrics").1;
        let of = page.lines().filter_map(|line| line.strip_prefix("weir_store_node_up{node=\""));
        of.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(nodes(), [sentinels.servers[0].addr()]);
    let _: redis::Value = sentinels.query(1, &["SENTINEL", "FAILOVER", "zoo"]).unwrap();
    eventually(SOON, "the new master alone", || nodes() == [sentinels.servers[1].addr()]);
    ready(&server);
}
