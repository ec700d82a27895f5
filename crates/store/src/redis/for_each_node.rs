//! One task for each known node.

use std::collections::HashMap;

use tokio::task::{AbortHandle, JoinSet};

use super::topology::{Address, ClusterView};

/// Keeps the task that `start` makes running for each known node, and stops those of nodes that are gone. `known` sees
/// the nodes after each change. Runs until it is dropped.
pub(super) async fn for_each_node<F: Future<Output = ()> + Send + 'static>(
    topology: &ClusterView,
    mut known: impl FnMut(&[Address]),
    mut start: impl FnMut(Address) -> F,
) {
    let mut changes = topology.changes();
    let (mut tasks, mut running) = (JoinSet::new(), HashMap::<Address, AbortHandle>::new());
    loop {
        let nodes = topology.nodes();
        running.retain(|node, task| {
            let stays = nodes.contains(node);
            if !stays {
                task.abort();
            }
            stays
        });
        while tasks.try_join_next().is_some() {}
        known(&nodes);
        for node in nodes {
            running.entry(node.clone()).or_insert_with(|| tasks.spawn(start(node)));
        }
        if !changes.changed().await {
            return;
        }
    }
}
