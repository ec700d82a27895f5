//! Moving a slot from one node to another, as resharding does.

use super::Cluster;
use crate::redis::RedisServer;

/// A slot on the move. Until it is finished, the old owner answers `ASK` for keys that it does not have.
#[must_use = "a migration stays half done until it is finished"]
#[derive(Debug)]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a RedisServer,
    to: &'a RedisServer,
}

impl Cluster {
    /// Moves a slot with its keys to the primary at this place in [`Cluster::nodes`].
    pub fn move_slot(&self, slot: u16, to_node_index: usize) {
        self.begin_migration(slot, to_node_index).finish();
    }

    /// Marks the slot as moving, but moves no key yet. Only clients that follow `ASK` get new keys
    /// served then, by the new owner, and old ones by the old owner.
    pub fn begin_migration(&self, slot: u16, to_node_index: usize) -> Migration<'_> {
        let (from, to) = (self.primary_of_slot(slot), &self.nodes[to_node_index]);
        assert_ne!(from.port(), to.port(), "slot {slot} is already there");
        to.cli(&["CLUSTER", "SETSLOT", &slot.to_string(), "IMPORTING", &id(from)]);
        from.cli(&["CLUSTER", "SETSLOT", &slot.to_string(), "MIGRATING", &id(to)]);
        Migration { cluster: self, slot, from, to }
    }
}

impl<'a> Migration<'a> {
    /// The node that the slot leaves.
    pub fn from(&self) -> &'a RedisServer {
        self.from
    }

    /// The node that the slot goes to.
    pub fn to(&self) -> &'a RedisServer {
        self.to
    }

    /// Moves the slot's keys, whose old owner then answers `ASK` for them.
    pub fn move_keys(&self) {
        loop {
            let slot = self.slot.to_string();
            let keys: Vec<String> = self.from.query(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
            if keys.is_empty() {
                return;
            }
            let port = self.to.port().to_string();
            let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            migrate.extend(keys.iter().map(String::as_str));
            self.from.cli(&migrate);
        }
    }

    /// Moves what keys are left and then the slot itself: the old owner answers `MOVED` from now on.
    pub fn finish(self) {
        self.move_keys();
        let (slot, to) = (self.slot.to_string(), id(self.to));
        // First the new owner, so that the slot always has an owner; then the old one, then all others.
        for node in [self.to, self.from].into_iter().chain(self.cluster.live_primaries()) {
            node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to]);
        }
        let owner = self.cluster.primary_of_slot(self.slot);
        assert_eq!(owner.port(), self.to.port(), "slot {slot} has not moved");
    }
}

fn id(node: &RedisServer) -> String {
    node.query(&["CLUSTER", "MYID"])
}
