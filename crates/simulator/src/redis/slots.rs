//! Slots of a cluster's nodes, as one of the nodes knows them.

use std::collections::{BTreeMap, BTreeSet};

use super::error_text::SimulatedError;
use super::reply::SimulatedReply;

/// A node by its address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimulatedNode {
    /// The host that clients dial.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Slots in a row, and who has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedRange {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
    /// The master.
    pub master: SimulatedNode,
    /// Replicas of the node.
    pub replicas: Vec<SimulatedNode>,
}

/// View of a cluster by one of its nodes. Views of nodes may differ for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedSlots {
    /// The node itself.
    pub own: SimulatedNode,
    /// All assigned slots.
    pub ranges: Vec<SimulatedRange>,
    /// Slots that leave this node: keys that are gone already are asked for there.
    pub migrating: BTreeMap<u16, SimulatedNode>,
    /// Slots that come to this node: it answers after ASKING.
    pub importing: BTreeSet<u16>,
}

/// Location of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlotPlace {
    Here,
    Elsewhere(SimulatedError),
}

/// The slot of a key: of what is between the first braces, if that is not empty.
pub fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let end = rest.iter().position(|byte| *byte == b'}')?;
        (end > 0).then(|| &rest[..end])
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % 16_384
}

impl SimulatedSlots {
    fn master(&self, slot: u16) -> Option<&SimulatedNode> {
        let range = self.ranges.iter().find(|range| (range.first..=range.last).contains(&slot))?;
        Some(&range.master)
    }

    /// Locates keys. `has` returns true if this node has a key.
    pub(super) fn place(
        &self,
        keys: &[Vec<u8>],
        asking: bool,
        mut has: impl FnMut(&[u8]) -> bool,
    ) -> SlotPlace {
        let Some(first) = keys.first() else { return SlotPlace::Here };
        let slot = slot_of(first);
        let elsewhere = |text: String| SlotPlace::Elsewhere(SimulatedError::from_text(text));
        if keys.iter().any(|key| slot_of(key) != slot) {
            return elsewhere("CROSSSLOT Keys in request don't hash to the same slot".to_owned());
        }
        let Some(master) = self.master(slot) else {
            return elsewhere("CLUSTERDOWN Hash slot not served".to_owned());
        };
        let missing = |has: &mut dyn FnMut(&[u8]) -> bool| keys.iter().any(|key| !has(key));
        if *master == self.own {
            return match self.migrating.get(&slot) {
                Some(to) if missing(&mut has) => elsewhere(format!("ASK {slot} {}:{}", to.host, to.port)),
                _ => SlotPlace::Here,
            };
        }
        if asking && self.importing.contains(&slot) {
            if keys.len() > 1 && missing(&mut has) {
                const TEXT: &str = "TRYAGAIN Multiple keys request during rehashing of slot";
                return elsewhere(TEXT.to_owned());
            }
            return SlotPlace::Here;
        }
        elsewhere(format!("MOVED {slot} {}:{}", master.host, master.port))
    }

    /// The reply to CLUSTER SLOTS.
    pub(super) fn slots_reply(&self) -> SimulatedReply {
        let node = |node: &SimulatedNode| {
            SimulatedReply::Array(vec![
                SimulatedReply::bulk(node.host.clone()),
                SimulatedReply::Int(node.port.into()),
                SimulatedReply::bulk(node.id()),
                SimulatedReply::Array(Vec::new()),
            ])
        };
        let range = |range: &SimulatedRange| {
            let mut parts =
                vec![SimulatedReply::Int(range.first.into()), SimulatedReply::Int(range.last.into())];
            parts.extend(std::iter::once(&range.master).chain(&range.replicas).map(node));
            SimulatedReply::Array(parts)
        };
        SimulatedReply::Array(self.ranges.iter().map(range).collect())
    }
}

impl SimulatedNode {
    /// Id of the node in the cluster.
    pub(super) fn id(&self) -> String {
        sha1_smol::Sha1::from(format!("{}:{}", self.host, self.port)).digest().to_string()
    }
}
