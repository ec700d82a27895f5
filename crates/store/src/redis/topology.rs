//! The cluster topology: the owner of each slot. A single server, or the master behind sentinels, is treated as a
//! cluster whose only node owns all slots.
//!
//! One watcher per process refreshes the slot map, apart from the workers: periodically, and whenever a worker
//! suspects a change (an error or redirect, or a timeout, which is all that a frozen node gives). Workers only
//! read.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use redis::Value;
use tokio::sync::Notify;
use weir_config::{RedisConfig, Topology as Kind};

use super::node_changes::{NextChange, NodeChanges};
use crate::StoreError;

const SLOTS: usize = 16384;

/// A node's address. The host of a Unix socket is its absolute path, and its port 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

/// The current view of the topology: the nodes of Redis and their slots.
pub(super) struct ClusterView {
    kind: Kind,
    seeds: Vec<Address>,
    map: ArcSwapOption<SlotMap>,
    suspicion: Notify,
    /// Notifies when the set of nodes changes.
    changes: NodeChanges,
}

pub(super) struct SlotMap {
    nodes: Vec<Address>,
    /// For each slot the owner's index in `nodes`; [`NOBODY`] if it has none.
    owners: Box<[u16]>,
}

const NOBODY: u16 = u16::MAX;

impl ClusterView {
    pub(super) fn new(config: &RedisConfig) -> Self {
        let seeds = config.nodes.iter().filter_map(|url| Address::of_url(url)).collect();
        let (map, suspicion, changes) = (ArcSwapOption::empty(), Notify::new(), NodeChanges::default());
        Self { kind: config.topology, seeds, map, suspicion, changes }
    }

    pub(super) fn owner(&self, slot: u16) -> Result<Address, StoreError> {
        let unknown = |why: &str| StoreError::Unavailable(why.into());
        if self.kind == Kind::Single {
            return self.seeds.first().cloned().ok_or_else(|| unknown("no address is configured"));
        }
        let map = self.map.load();
        let map = map.as_ref().ok_or_else(|| {
            unknown(match self.kind {
                Kind::Sentinel => "no sentinel has named a master yet",
                _ => "no node of the cluster has answered CLUSTER SLOTS yet",
            })
        })?;
        map.owner(slot).cloned().ok_or_else(|| unknown("no node of the cluster holds the slot"))
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.kind == Kind::Cluster
    }

    /// Returns all nodes that own slots, by the current slot map.
    pub(super) fn nodes(&self) -> Vec<Address> {
        match self.kind {
            Kind::Single => self.seeds.iter().take(1).cloned().collect(),
            _ => self.map.load().as_ref().map_or_else(Vec::new, |map| map.nodes.clone()),
        }
    }

    /// Returns the addresses to query for the topology. In a cluster these are the nodes of the map, then the seeds;
    /// otherwise the seeds alone.
    pub(super) fn candidates(&self) -> Vec<Address> {
        if self.kind != Kind::Cluster {
            return self.seeds.clone();
        }
        let map = self.map.load();
        let mut all: Vec<Address> = map.as_ref().map(|map| map.nodes.clone()).unwrap_or_default();
        all.extend(self.seeds.iter().filter(|&seed| !all.contains(seed)).cloned().collect::<Vec<_>>());
        all
    }

    /// True if a connection to `address` may still be used.
    pub(super) fn knows(&self, address: &Address) -> bool {
        let in_map = self.map.load().as_ref().is_some_and(|map| map.nodes.contains(address));
        in_map || (self.kind != Kind::Sentinel && self.seeds.contains(address))
    }

    /// Requests a refresh by the watcher.
    pub(super) fn suspect(&self) {
        self.suspicion.notify_one();
    }

    /// Waits until a worker suspects that the topology has changed.
    pub(super) async fn suspected(&self) {
        self.suspicion.notified().await;
    }

    /// Subscribes to changes of [`ClusterView::nodes`].
    pub(super) fn changes(&self) -> NextChange {
        self.changes.subscribe()
    }

    pub(super) fn replace(&self, map: SlotMap) {
        let before = self.nodes();
        self.map.store(Some(Arc::new(map)));
        if self.nodes() != before {
            self.changes.tell();
        }
    }
}

impl SlotMap {
    fn owner(&self, slot: u16) -> Option<&Address> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// Returns a map whose only node owns all slots.
    pub(super) fn of_one(address: Address) -> Self {
        Self { nodes: vec![address], owners: vec![0; SLOTS].into_boxed_slice() }
    }

    /// Parses the reply to `CLUSTER SLOTS` from the node at `asked`. Its host replaces one that the reply leaves empty
    /// or unknown.
    pub(super) fn parse(reply: &Value, asked: &Address) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let mut map = Self { nodes: Vec::new(), owners: vec![NOBODY; SLOTS].into_boxed_slice() };
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = range.as_slice() else {
                return None;
            };
            let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
            let host = match host {
                Value::BulkString(host) if !host.is_empty() && host != b"?" => String::from_utf8_lossy(host),
                _ => asked.host.as_ref().into(),
            };
            let node = map.node(Address::new(&host, u16::try_from(*port).ok()?));
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            map.owners.get_mut(slots)?.fill(node);
        }
        (!map.nodes.is_empty()).then_some(map)
    }

    fn node(&mut self, address: Address) -> u16 {
        let known = self.nodes.iter().position(|node| *node == address);
        let index = known.unwrap_or_else(|| {
            self.nodes.push(address);
            self.nodes.len() - 1
        });
        u16::try_from(index).unwrap_or(NOBODY)
    }
}

impl Address {
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    pub(super) fn socket(&self) -> Option<&Path> {
        self.host.starts_with('/').then(|| Path::new(&*self.host))
    }

    /// Parses `redis://host:port` or `rediss://host:port`, with brackets around an IPv6 host, or `unix:/path`.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        if let Some(path) = url.strip_prefix("unix:") {
            return Some(Self::new(path, 0));
        }
        let (_, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?']).next()?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, 6379),
        };
        Some(Self::new(host.trim_start_matches('[').trim_end_matches(']'), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket() {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
