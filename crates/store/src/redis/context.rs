//! State that all connections of a process share.

use std::sync::Arc;

use weir_config::RedisConfig;

use super::breaker::Breakers;
use super::connection_counts::ConnectionCounts;
use super::printed::PrintedPasswords;
use super::single_slot::SingleSlotNodes;
use super::surroundings::Surroundings;
use super::topology::ClusterView;

/// The shared context of every link, the watcher and the monitor.
pub(super) struct LinkContext {
    pub(super) config: RedisConfig,
    pub(super) passwords: PrintedPasswords,
    pub(super) connections: ConnectionCounts,
    pub(super) surroundings: Surroundings,
    pub(super) topology: Arc<ClusterView>,
    pub(super) single_slot_nodes: SingleSlotNodes,
    pub(super) breakers: Arc<Breakers>,
}
