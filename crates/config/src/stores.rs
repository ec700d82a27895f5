//! The configuration types of the stores. The sections `store` and `redis` are read into them, and the stores trust
//! them.

mod secret;
mod tls;

pub use self::secret::{MAX_SECRET, Secret, SecretError};
pub use self::tls::{ClientFiles, Identity, TlsCheck, TlsError};
use super::table::{MemoryConfig, RedisConfig};

/// The store of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // a process has one of these
pub enum StoreConfig {
    /// The memory of this process.
    Memory(MemoryConfig),
    /// Redis or Valkey.
    Redis(RedisConfig),
}

/// The policy for new keys when live keys use up the memory budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The key that would be full again soonest is evicted, from a strategy above its share if there is one.
    /// Exhausted keys are never evicted.
    #[default]
    Evict,
    /// No key is evicted: the strategy's `on_store_failure` answers for new keys.
    Refuse,
}

/// Credentials for Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name; `None` is the default user.
    pub username: Option<String>,
    /// The password.
    pub password: Secret,
}

/// The settings of the sentinels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentinel {
    /// The master's name at the sentinels.
    pub master_name: String,
    /// The credentials for the sentinels; `None` is their default user.
    pub login: Option<Login>,
}

/// The topology of Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    #[default]
    Single,
    /// A Redis Cluster.
    Cluster,
    /// A master with failover by sentinels.
    Sentinel,
}

impl RedisConfig {
    /// Assumed number of nodes of a cluster, however many seeds are configured.
    const CLUSTER_NODES: usize = 16;

    /// Returns the number of open files that the connections of `workers` workers need. Each worker has one to every
    /// node, and so has the monitor; a new one may be opened before the one that it replaces is closed. Besides, each
    /// worker has one timer for calls in flight, and one for callers that wait for the next call.
    #[must_use]
    pub fn open_files(&self, workers: usize) -> usize {
        let nodes = match self.topology {
            Topology::Single | Topology::Sentinel => self.nodes.len(),
            Topology::Cluster => self.nodes.len().max(Self::CLUSTER_NODES),
        };
        2 * (workers + 1) * nodes + 2 * workers
    }
}
