//! Which node holds which slot. One server is a cluster whose only node holds them all, and so is the
//! master that sentinels name.
//!
//! One watcher per process keeps the map, apart from the workers: it looks again when a worker
//! suspects that something has moved or died (also after time-outs, which a frozen node gives instead
//! of errors), and now and then unasked. Workers only read.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use redis::Value;
use tokio::sync::{Notify, watch};
use weir_config::{RedisConfig, Topology as Kind};

use crate::StoreError;

/// Slots of a Redis Cluster.
const SLOTS: usize = 16384;

/// A node's address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

/// The nodes of Redis and the slots of each, as far as is known.
pub(super) struct ClusterView {
    kind: Kind,
    seeds: Vec<Address>,
    map: ArcSwapOption<SlotMap>,
    suspicion: Notify,
    /// Changes when other nodes hold slots than before.
    changes: watch::Sender<()>,
}

/// The owner of every slot.
pub(super) struct SlotMap {
    nodes: Vec<Address>,
    /// Index into `nodes`; [`NOBODY`] where no node holds the slot.
    owners: Box<[u16]>,
}

const NOBODY: u16 = u16::MAX;

impl ClusterView {
    pub(super) fn new(config: &RedisConfig) -> Self {
        let seeds = config.nodes.iter().filter_map(|url| Address::of_url(url)).collect();
        let (map, suspicion, changes) = (ArcSwapOption::empty(), Notify::new(), watch::Sender::new(()));
        Self { kind: config.topology, seeds, map, suspicion, changes }
    }

    /// The node that holds `slot`.
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

    /// All nodes that hold slots, as far as is known.
    pub(super) fn nodes(&self) -> Vec<Address> {
        match self.kind {
            Kind::Single => self.seeds.iter().take(1).cloned().collect(),
            _ => self.map.load().as_ref().map_or_else(Vec::new, |map| map.nodes.clone()),
        }
    }

    /// Every address worth asking: those of the map, then the seeds. Masters are not asked for masters.
    pub(super) fn candidates(&self) -> Vec<Address> {
        if self.kind != Kind::Cluster {
            return self.seeds.clone();
        }
        let map = self.map.load();
        let mut all: Vec<Address> = map.as_ref().map(|map| map.nodes.clone()).unwrap_or_default();
        all.extend(self.seeds.iter().filter(|&seed| !all.contains(seed)).cloned().collect::<Vec<_>>());
        all
    }

    /// Whether a connection to `address` is still of use.
    pub(super) fn knows(&self, address: &Address) -> bool {
        let in_map = self.map.load().as_ref().is_some_and(|map| map.nodes.contains(address));
        in_map || (self.kind != Kind::Sentinel && self.seeds.contains(address))
    }

    /// Asks the watcher to look again.
    pub(super) fn suspect(&self) {
        self.suspicion.notify_one();
    }

    /// Waits until a worker suspects that the topology has changed.
    pub(super) async fn suspected(&self) {
        self.suspicion.notified().await;
    }

    /// Tells of changes of [`Topology::nodes`].
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn replace(&self, map: SlotMap) {
        let before = self.nodes();
        self.map.store(Some(Arc::new(map)));
        if self.nodes() != before {
            self.changes.send_replace(());
        }
    }
}

impl SlotMap {
    fn owner(&self, slot: u16) -> Option<&Address> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// A map whose only node holds everything.
    pub(super) fn of_one(address: Address) -> Self {
        Self { nodes: vec![address], owners: vec![0; SLOTS].into_boxed_slice() }
    }

    /// Reads the reply of `CLUSTER SLOTS` from the node at `asked`, whose own host name stands for an
    /// address that the cluster does not name.
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

    /// The address in `redis://host:port` or `rediss://host:port`, with brackets around an IPv6 host.
    pub(super) fn of_url(url: &str) -> Option<Self> {
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
        write!(f, "{}:{}", self.host, self.port)
    }
}
