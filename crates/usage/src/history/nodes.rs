//! The nodes of a deployment, as each of them describes itself. A node is one process.
//!
//! ```text
//!   nodes                      sorted set   NODE:INCARNATION, by when it wrote last
//!   node:NODE:INCARNATION      hash         the row of the node, for an hour after its last write
//!   up:NODE:INCARNATION        hash         there while the node runs: it expires after three missed writes
//! ```
//!
//! A row without its `up` is that of a node that has ended. Whether a node runs is so a matter of the clock of Redis alone.

mod row;

use std::time::{Duration, Instant};

use weir_node::readiness::{Readiness, State};
use weir_node::telemetry::ConfigLoads;
use weir_time::clock::monotonic;
use weir_units::Micros;

pub(crate) use self::row::{DeploymentNode, NodePhase};
use super::collect::second;
use super::exchange::{MAX_NODES, NODE_SECONDS, NODES, SLACK};
use crate::store::{UsageCommand, UsageLink};

/// Interval of writes while nothing has changed.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// Lifetime of the sign that a node runs, in seconds.
const UP_SECONDS: u64 = 30;

/// Time in seconds for which a node that has ended is shown.
const SHOWN_SECONDS: u64 = 3_600;

/// Most nodes in an answer: those that wrote last.
const MAX_SHOWN: usize = 256;

/// Facts that a node knows of itself.
#[derive(Debug, Clone)]
pub(crate) struct OwnNode {
    /// The name of the node.
    pub(crate) name: String,
    /// The gRPC address of the node.
    pub(crate) address: String,
    /// The readiness of the node.
    pub(crate) readiness: Readiness,
    /// The files and the version of live control that the node has.
    pub(crate) loads: ConfigLoads,
}

/// The row of this node, and those of the others.
pub(super) struct NodeRoster {
    own: OwnNode,
    /// `NODE:INCARNATION` of this process, whatever happens to its clock.
    member: String,
    started: u64,
    written: Option<(DeploymentNode, Instant)>,
}

/// An answer: the nodes, those that have ended last, and why some may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodesAnswer {
    /// The nodes.
    pub(crate) nodes: Vec<DeploymentNode>,
    /// Reason why other nodes are missing.
    pub(crate) incomplete: Option<String>,
}

impl NodeRoster {
    /// The row of a process that began at `started`.
    pub(super) fn new(own: OwnNode, member: String, started: Micros) -> Self {
        Self { own, member, started: second(started), written: None }
    }

    /// Writes the row, if it has changed, if it is due, or because the process ends.
    pub(super) async fn write(&mut self, link: &mut UsageLink, now: Micros, ends: bool) {
        let mut row = self.row();
        if ends {
            (row.state, row.ended) = (NodePhase::Ended, Some(second(now)));
        }
        let at = monotonic();
        let is_new = |(written, since): &(DeploymentNode, Instant)| {
            *written != row || at.saturating_duration_since(*since) >= WRITE_EVERY
        };
        if !self.written.as_ref().is_none_or(is_new) {
            return;
        }
        let (now, member) = (second(now), &self.member);
        let mut fields = row.fields();
        fields.push(("seen".to_owned(), now.to_string()));
        let up = vec![("at".to_owned(), now.to_string())];
        let commands = [
            UsageCommand::Hash { key: format!("node:{member}"), fields, seconds: SHOWN_SECONDS },
            // One second is the shortest time that a hash can be kept for.
            UsageCommand::Hash {
                key: format!("up:{member}"),
                fields: up,
                seconds: if ends { 1 } else { UP_SECONDS },
            },
            UsageCommand::Set {
                key: NODES.to_owned(),
                members: vec![(now, member.clone())],
                seconds: NODE_SECONDS,
            },
        ];
        // The exchange of usage logs what fails.
        match link.write(&commands).await {
            Ok(_) => self.written = Some((row, at)),
            Err(reason) => tracing::debug!(reason, "cannot write the row of this node"),
        }
    }

    /// Reads all nodes that run, or ended within the last hour; without a link, this one alone.
    pub(super) async fn read(&self, link: Option<&mut UsageLink>, now: Micros) -> NodesAnswer {
        let mut answer = NodesAnswer { nodes: vec![self.row()], incomplete: None };
        if let Some(link) = link {
            match self.others(link, second(now)).await {
                Ok(others) => answer.nodes.extend(others),
                Err(reason) => answer.incomplete = Some(reason),
            }
        }
        answer.nodes.sort_by(|one, other| one.order().cmp(&other.order()));
        answer
    }

    async fn others(&self, link: &mut UsageLink, now: u64) -> Result<Vec<DeploymentNode>, String> {
        let known = link.sets(&[NODES.to_owned()]).await?.into_iter().flatten().take(MAX_NODES + 1);
        let recent = |(member, last): &(String, u64)| {
            *member != self.member && last.saturating_add(SHOWN_SECONDS + SLACK) >= now
        };
        let mut members: Vec<(String, u64)> = known.filter(recent).collect();
        members.sort_by_key(|(_, last)| std::cmp::Reverse(*last));
        members.truncate(MAX_SHOWN - 1);
        let keys =
            |kind: &str| members.iter().map(|(member, _)| format!("{kind}:{member}")).collect::<Vec<_>>();
        let rows = link.hashes(&keys("node")).await?;
        let up = link.hashes(&keys("up")).await?;
        let nodes =
            rows.into_iter().zip(up).filter_map(|(row, up)| DeploymentNode::read(row, !up.is_empty()));
        Ok(nodes.collect())
    }

    fn row(&self) -> DeploymentNode {
        let OwnNode { name, address, readiness, loads } = &self.own;
        DeploymentNode {
            name: name.clone(),
            address: address.clone(),
            state: match readiness.state() {
                State::Ready => NodePhase::Serving,
                State::Degraded(_) => NodePhase::Degraded,
                State::NotReady(_) | State::WithoutStore(_) => NodePhase::NotReady,
                State::Draining | State::Closing => NodePhase::Draining,
            },
            ended: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            files_read: loads.last_read(),
            files: loads.hash().to_string(),
            control: loads.control(),
        }
    }
}
