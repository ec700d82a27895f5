//! Which configuration each node has: a sorted set of what nodes say, by the time at which they said it last.

use redis::Value;
use weir_core::control::ControlPosition;
use weir_units::Micros;

use super::ControlLink;
use super::decode::position_of;
use super::position_bytes;
use crate::redis::reply::{garbled, text};

/// How long what a node said is kept.
const LASTS: Micros = Micros::from_secs(10);

/// The key expires after this time without any node.
const KEY_LASTS: Micros = Micros::from_secs(60);

/// The most nodes that are shown.
const MOST_NODES: usize = 1_000;

/// The longest name of a node that is kept, in bytes.
const MAX_NAME: usize = 256;

/// What a node says of its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlNode {
    /// Its name.
    pub node: String,
    /// The hash of its files.
    pub files: String,
    /// The last change of live control that it knows.
    pub position: ControlPosition,
}

impl ControlLink {
    /// Says what this node has instead of what it said before, and returns what all nodes say, this one included.
    pub async fn exchange_nodes(
        &mut self,
        own: &ControlNode,
        before: Option<&ControlNode>,
    ) -> Result<Vec<ControlNode>, String> {
        let key = self.exchange.nodes_key();
        let now = self.store_time.unwrap_or_default();
        let mut commands = redis::pipe();
        if let Some(before) = before.filter(|before| *before != own) {
            commands.cmd("ZREM").arg(&key).arg(member(before));
        }
        commands.cmd("ZADD").arg(&key).arg(now.0).arg(member(own));
        commands.cmd("ZREMRANGEBYSCORE").arg(&key).arg("-inf").arg(now.0.saturating_sub(LASTS.0));
        // By the clock of Redis, which a time that tests tell may be far from.
        if self.exchange.now().is_none() {
            commands.cmd("PEXPIREAT").arg(&key).arg(now.0.saturating_add(KEY_LASTS.0) / 1_000);
        }
        commands.cmd("ZSCAN").arg(&key).arg(0).arg("COUNT").arg(MOST_NODES);
        let replies = self.exchange.send(&commands).await?;
        let Some(Value::Array(page)) = replies.last() else { return Err(garbled().to_string()) };
        let [_, Value::Array(pairs)] = &page[..] else { return Err(garbled().to_string()) };
        let members = pairs.iter().step_by(2).filter_map(read).take(MOST_NODES);
        let mut nodes: Vec<ControlNode> = members.collect();
        // Of one name the last is kept.
        nodes.sort_unstable_by(|one, other| (&one.node, other.position).cmp(&(&other.node, one.position)));
        nodes.dedup_by(|one, other| one.node == other.node);
        Ok(nodes)
    }
}

/// The position, the hash and the name. A name may have any character.
fn member(node: &ControlNode) -> Vec<u8> {
    let mut out = position_bytes(node.position).to_vec();
    out.extend_from_slice(node.files.as_bytes());
    out.push(b' ');
    out.extend(node.node.bytes().take(MAX_NAME));
    out
}

/// What other nodes say is data of theirs; what cannot be read is left out.
fn read(member: &Value) -> Option<ControlNode> {
    let Value::BulkString(bytes) = member else { return None };
    let (position, rest) = bytes.split_at_checked(16)?;
    let rest = text(&Value::BulkString(rest.to_vec())).ok()?.into_owned();
    let (files, node) = rest.split_once(' ')?;
    Some(ControlNode { node: node.to_owned(), files: files.to_owned(), position: position_of(position)? })
}
