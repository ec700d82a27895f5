//! Which configuration each node has. On Redis nodes tell one another; on the memory store there is only this one.

use std::time::Instant;

use parking_lot::Mutex;
use weir_store::redis::ControlNode;

/// What nodes have said last.
#[derive(Debug, Default)]
pub(super) struct KnownNodes(pub(super) Mutex<Vec<ControlNode>>);

/// What this node has told, and when.
#[derive(Debug, Default)]
pub(super) struct ToldNode {
    pub(super) told: Option<ControlNode>,
    pub(super) at: Option<Instant>,
}

impl KnownNodes {
    /// The nodes, in the order of their names.
    pub(super) fn all(&self) -> Vec<ControlNode> {
        self.0.lock().clone()
    }
}
