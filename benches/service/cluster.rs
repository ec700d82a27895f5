//! A Redis Cluster of primaries, each with its slots.

use std::time::Duration;

use redis::{Client, Connection, cmd};
use tempfile::TempDir;

use crate::processes::{self, Process};

/// A primary for each range of slots (`0-5460`), once all of them know each other.
pub fn start(files: &TempDir, slots: &[&str]) -> Vec<Process> {
    let nodes: Vec<Process> = slots.iter().map(|slots| node(files, slots)).collect();
    let mut connections: Vec<Connection> = nodes.iter().map(connect).collect();
    for (connection, slots) in connections.iter_mut().zip(slots) {
        let (first, last) = slots.split_once('-').expect("a range");
        cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(first).arg(last).exec(connection).expect("give it slots");
    }
    for node in &nodes[1..] {
        let mut meet = cmd("CLUSTER");
        meet.arg("MEET").arg("127.0.0.1").arg(node.port);
        meet.exec(&mut connections[0]).expect("introduce the nodes");
    }
    let known = format!("cluster_known_nodes:{}", nodes.len());
    let is_whole = |connection: &mut Connection| {
        let info: String = cmd("CLUSTER").arg("INFO").query(connection).expect("ask a node");
        info.contains("cluster_state:ok") && info.contains(&known)
    };
    for _ in 0..500 {
        if connections.iter_mut().all(is_whole) {
            return nodes;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the cluster is not whole within 10 s");
}

fn node(files: &TempDir, slots: &str) -> Process {
    let file = format!("nodes-{slots}.conf");
    processes::redis(files, &["--cluster-enabled", "yes", "--cluster-config-file", &file])
}

fn connect(node: &Process) -> Connection {
    let client = Client::open(format!("redis://{}", node.address())).expect("an address");
    client.get_connection().expect("connect to a node")
}
