//! Making a cluster of single servers, as `redis-cli --cluster create` does, but faster.

use std::thread;
use std::time::{Duration, Instant};

use super::{Cluster, view};
use crate::redis::RedisServer;
use crate::wait::{SOON, eventually};

const SLOTS: usize = 16_384;

pub(super) fn create(primaries: usize, replicas: usize, node_timeout: Duration, args: &[&str]) -> Cluster {
    let nodes = start_nodes(primaries * (1 + replicas), node_timeout, args);
    let cluster = Cluster { nodes, primaries };
    assign_slots(&cluster);
    introduce(&cluster);
    assign_replicas(&cluster);
    eventually(SOON, "the cluster is formed", || is_formed(&cluster, replicas));
    cluster
}

fn start_nodes(count: usize, node_timeout: Duration, args: &[&str]) -> Vec<RedisServer> {
    let builder = args.iter().fold(cluster_node(node_timeout), |builder, arg| builder.arg(*arg));
    thread::scope(|scope| {
        let starts: Vec<_> = (0..count).map(|_| scope.spawn(|| builder.clone().start())).collect();
        starts.into_iter().map(|start| start.join().expect("a node starts")).collect()
    })
}

fn cluster_node(node_timeout: Duration) -> crate::redis::RedisBuilder {
    let node_timeout = node_timeout.as_millis().to_string();
    let settings = [
        ("--cluster-enabled", "yes"),
        ("--cluster-announce-ip", "127.0.0.1"),
        ("--cluster-node-timeout", node_timeout.as_str()),
        // One lost primary takes its own slots down, and no others.
        ("--cluster-require-full-coverage", "no"),
        // A replica may take over, however long it had no contact with its master.
        ("--cluster-replica-validity-factor", "0"),
        // Replicas stay with their primaries.
        ("--cluster-migration-barrier", "999"),
        // A replica is in sync without the usual wait for others to join in.
        ("--repl-diskless-sync", "yes"),
        ("--repl-diskless-sync-delay", "0"),
    ];
    settings.into_iter().fold(RedisServer::builder(), |builder, (name, value)| builder.arg(name).arg(value))
}

/// Also gives every node an epoch of its own, as long as none has met another: two nodes with the same
/// would have to find that out and settle it first.
fn assign_slots(cluster: &Cluster) {
    for (index, node) in cluster.nodes.iter().enumerate() {
        node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        if index < cluster.primaries {
            let first = |index: usize| index * SLOTS / cluster.primaries;
            let mut command = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
            command.extend((first(index)..first(index + 1)).map(|slot| slot.to_string()));
            node.cli(&command.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

/// Introduces every node to every other one, because gossip is slow. It does so again until all know each other: two
/// nodes that do not run for a second during the handshake forget it.
fn introduce(cluster: &Cluster) {
    let all = cluster.nodes.len();
    let knows_all = |node| view::read(node).is_some_and(|view| view.known() == all);
    let mut met = None::<Instant>;
    eventually(SOON, "all nodes know each other", || {
        if met.is_none_or(|met| met.elapsed() > Duration::from_secs(5)) {
            meet(cluster);
            met = Some(Instant::now());
        }
        cluster.nodes.iter().all(knows_all)
    });
}

fn meet(cluster: &Cluster) {
    for (index, node) in cluster.nodes.iter().enumerate() {
        for other in &cluster.nodes[index + 1..] {
            node.cli(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
        }
    }
}

fn assign_replicas(cluster: &Cluster) {
    let (primaries, replicas) = cluster.nodes.split_at(cluster.primaries);
    for (replica, primary) in replicas.iter().zip(primaries.iter().cycle()) {
        let id: String = primary.query(&["CLUSTER", "MYID"]);
        replica.cli(&["CLUSTER", "REPLICATE", &id]);
    }
}

fn is_formed(cluster: &Cluster, replicas: usize) -> bool {
    let (primaries, others) = cluster.nodes.split_at(cluster.primaries);
    let agrees = |node| {
        let Some(view) = view::read(node) else { return false };
        let slots_and_replicas = primaries.iter().enumerate().all(|(index, primary)| {
            let slot =
                u16::try_from(index * SLOTS / cluster.primaries).expect("is below the number of slots");
            view.owner_port(slot) == Some(primary.port())
                && view.replica_ports(primary.port()).count() == replicas
        });
        view.known() == cluster.nodes.len() && slots_and_replicas && view::is_well(node)
    };
    let in_sync = |replica: &RedisServer| {
        let info: Option<String> = replica.try_query(&["INFO", "replication"]).ok();
        info.is_some_and(|info| info.contains("master_link_status:up"))
    };
    cluster.nodes.iter().all(agrees) && others.iter().all(in_sync)
}
