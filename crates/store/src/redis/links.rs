//! One worker's connections: one to each node that holds slots.
//!
//! They are opened as soon as a node is known, at the start and after every topology change, so that no call waits
//! for a handshake.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::context::LinkContext;
use super::link::Link;
use super::node_changes::NextChange;
use super::topology::Address;
use weir_time::deadlines::Deadlines;

/// A worker's connections.
pub(super) struct Links {
    context: Arc<LinkContext>,
    deadlines: Deadlines,
    open: Mutex<HashMap<Address, Arc<Link>, foldhash::fast::RandomState>>,
}

impl Links {
    /// Opens connections to all known nodes on the current runtime.
    pub(super) fn open(context: Arc<LinkContext>, deadlines: Deadlines) -> Arc<Self> {
        let changes = context.topology.changes();
        let links = Arc::new(Self { context, deadlines, open: Mutex::default() });
        links.open_known();
        tokio::spawn(keep(Arc::downgrade(&links), changes));
        links
    }

    /// Returns the connection to the node at `address`, and opens it if necessary.
    pub(super) fn to(&self, address: &Address) -> Arc<Link> {
        let mut open = self.open.lock();
        if let Some(link) = open.get(address) {
            return Arc::clone(link);
        }
        // A new node is the occasion to drop connections to nodes that have left.
        open.retain(|known, _| self.context.topology.knows(known));
        let link = Link::open(address.clone(), Arc::clone(&self.context), self.deadlines.clone());
        Arc::clone(open.entry(address.clone()).or_insert(Arc::new(link)))
    }

    fn open_known(&self) {
        for node in self.context.topology.nodes() {
            self.to(&node);
        }
    }
}

/// Opens connections to new nodes, until the worker has ended.
async fn keep(links: Weak<Links>, mut changes: NextChange) {
    while changes.changed().await {
        let Some(links) = links.upgrade() else { return };
        links.open_known();
    }
}
