//! A real Redis Cluster of the test's own.

mod create;
mod migrate;
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::migrate::Migration;
use super::redis::RedisServer;
use super::wait::{self, SOON};

/// `cluster-node-timeout` with replicas: long enough that a busy machine rarely looks like a failure, short enough
/// to wait for a failover.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// Primaries that share the 16384 slots evenly, and their replicas. Every node dies on drop.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
    primaries: usize,
}

impl Cluster {
    /// Starts a cluster, and returns when every node says that all is well.
    pub fn start(primaries: usize, replicas_per_primary: usize) -> Self {
        // Without replicas there is no failover, and a machine that stands still is no failure.
        let node_timeout = if replicas_per_primary > 0 { NODE_TIMEOUT } else { SOON };
        Self::start_with(primaries, replicas_per_primary, node_timeout, &[])
    }

    /// [`Cluster::start`] with another `cluster-node-timeout`, and more arguments for every server.
    pub fn start_with(
        primaries: usize,
        replicas_per_primary: usize,
        node_timeout: Duration,
        args: &[&str],
    ) -> Self {
        create::create(primaries, replicas_per_primary, node_timeout, args)
    }

    /// All nodes: first those that began as primaries, in the order of their slots, then the replicas.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The addresses of all nodes, as Redis clients take them.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The slot that Redis puts this key in.
    pub fn slot_of(&self, key: &str) -> u16 {
        self.any_node().query(&["CLUSTER", "KEYSLOT", key])
    }

    /// The node that owns the slot, which all nodes that answer must agree on. It may itself be dead.
    pub fn primary_of_slot(&self, slot: u16) -> &RedisServer {
        wait::eventually_some(SOON, "the nodes agree on the owner of a slot", || self.owner(slot))
    }

    /// [`Cluster::primary_of_slot`] for the slot of a key.
    pub fn primary_of_key(&self, key: &str) -> &RedisServer {
        self.primary_of_slot(self.slot_of(key))
    }

    /// A replica of the slot's primary that is alive, and knows that it is one: after a failover, the old
    /// primary takes a moment to find out.
    pub fn replica_of(&self, slot: u16) -> &RedisServer {
        wait::eventually_some(SOON, "the slot's primary has a live replica", || {
            let primary = self.owner(slot)?.port();
            let is_replica = |node: &RedisServer| {
                view::read(node)
                    .is_some_and(|view| view.replica_ports(primary).any(|port| port == node.port()))
            };
            self.responsive().find(|node| is_replica(node))
        })
    }

    /// Kills the slot's primary, as a crash would, and returns it.
    pub fn kill_primary_of(&self, slot: u16) -> &RedisServer {
        let primary = self.primary_of_slot(slot);
        primary.kill();
        primary
    }

    /// Freezes the slot's primary, and returns it, for [`RedisServer::thaw`].
    pub fn freeze_primary_of(&self, slot: u16) -> &RedisServer {
        let primary = self.primary_of_slot(slot);
        primary.freeze();
        primary
    }

    /// Waits until a node on another port is the primary of the slot, every node that answers knows it, and it is
    /// ready to serve. Returns it.
    pub fn wait_for_promotion(&self, slot: u16, not_this_port: u16, timeout: Duration) -> &RedisServer {
        wait::eventually_some(timeout, "a replica is promoted", || {
            let owner = self.owner(slot).filter(|owner| owner.port() != not_this_port)?;
            self.responsive().all(view::is_well).then_some(owner)
        })
    }

    /// All keys on all primaries, with what [`RedisServer::pttl`] says about each.
    pub fn all_keys(&self) -> BTreeMap<String, i64> {
        let mut keys = BTreeMap::new();
        for primary in self.live_primaries() {
            keys.extend(primary.keys().into_iter().map(|key| (key.clone(), primary.pttl(&key))));
        }
        keys
    }

    /// Makes all nodes forget every script, so that `EVALSHA` answers `NOSCRIPT`.
    pub fn flush_scripts(&self) {
        self.responsive().for_each(RedisServer::flush_scripts);
    }

    /// Removes all data.
    pub fn flush_all(&self) {
        self.live_primaries().for_each(RedisServer::flush_all);
    }

    fn owner(&self, slot: u16) -> Option<&RedisServer> {
        let mut owners = self.responsive().map(|node| view::read(node)?.owner_port(slot));
        let first = owners.next().expect("some node of the cluster is alive")?;
        owners.all(|owner| owner == Some(first)).then(|| self.node_on(first))
    }

    fn live_primaries(&self) -> impl Iterator<Item = &RedisServer> {
        self.responsive().filter(|node| view::read(node).is_some_and(|view| view.is_of_primary()))
    }

    fn responsive(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_responsive())
    }

    fn any_node(&self) -> &RedisServer {
        self.responsive().next().expect("some node of the cluster is alive")
    }

    fn node_on(&self, port: u16) -> &RedisServer {
        self.nodes.iter().find(|node| node.port() == port).expect("all nodes are this cluster's")
    }
}
