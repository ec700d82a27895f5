//! One node's view of the cluster: its `CLUSTER NODES`.

use std::ops::RangeInclusive;

use crate::redis::RedisServer;

/// One node's view of the cluster.
pub(super) struct View(Vec<NodeLine>);

/// The view of one node.
struct NodeLine {
    id: String,
    port: u16,
    is_myself: bool,
    is_primary: bool,
    /// True after the handshake, while connected.
    is_known: bool,
    primary_id: String,
    slots: Vec<RangeInclusive<u16>>,
}

/// Queries the view of this node; `None` if it does not answer.
pub(super) fn read(node: &RedisServer) -> Option<View> {
    let text: String = node.try_query(&["CLUSTER", "NODES"]).ok()?;
    Some(View(text.lines().map(NodeLine::parse).collect()))
}

/// True if the node reports `cluster_state:ok`.
pub(super) fn is_well(node: &RedisServer) -> bool {
    let info: Option<String> = node.try_query(&["CLUSTER", "INFO"]).ok();
    info.is_some_and(|info| info.contains("cluster_state:ok"))
}

impl View {
    /// Returns the port of the slot's owner.
    pub(super) fn owner_port(&self, slot: u16) -> Option<u16> {
        self.0.iter().find(|line| line.slots.iter().any(|range| range.contains(&slot))).map(|line| line.port)
    }

    /// Iterates over the ports of this primary's replicas.
    pub(super) fn replica_ports(&self, primary_port: u16) -> impl Iterator<Item = u16> {
        let primary = self.0.iter().find(|line| line.port == primary_port);
        let replicas = self.0.iter().filter(move |line| primary.is_some_and(|it| it.id == line.primary_id));
        replicas.map(|line| line.port)
    }

    /// True if the node itself is a primary.
    pub(super) fn is_of_primary(&self) -> bool {
        self.0.iter().any(|line| line.is_myself && line.is_primary)
    }

    /// Returns the number of nodes it is connected to, including itself.
    pub(super) fn known(&self) -> usize {
        self.0.iter().filter(|line| line.is_known).count()
    }
}

impl NodeLine {
    /// `id ip:port@bus-port flags primary-id ping pong epoch link-state slots…`
    fn parse(line: &str) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        let port = fields[1].split(['@', ',']).next().and_then(|address| address.rsplit(':').next());
        let flags: Vec<&str> = fields[2].split(',').collect();
        let has = |flag: &str| flags.contains(&flag);
        Self {
            id: fields[0].to_owned(),
            port: port.and_then(|port| port.parse().ok()).expect("CLUSTER NODES tells every node's port"),
            is_myself: has("myself"),
            is_primary: has("master"),
            is_known: !has("handshake") && fields[7] == "connected",
            primary_id: fields[3].to_owned(),
            // Slots in brackets are being migrated; their owner lists them as its own, too.
            slots: fields[8..].iter().filter(|it| !it.starts_with('[')).map(|it| range(it)).collect(),
        }
    }
}

fn range(slots: &str) -> RangeInclusive<u16> {
    let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
    let number = |text: &str| text.parse().expect("a slot is a number");
    number(first)..=number(last)
}
