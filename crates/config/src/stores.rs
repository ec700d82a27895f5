//! What the stores are configured with. The sections `store` and `redis` are read into these types, and the stores
//! trust them.

mod secret;
mod tls;

pub use self::secret::{MAX_SECRET, Secret, SecretError};
pub use self::tls::{ClientFiles, Identity, TlsCheck, TlsError};
use super::table::{MemoryConfig, RedisConfig};

/// Where state lives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // a process has one of these
pub enum StoreConfig {
    /// In this process.
    Memory(MemoryConfig),
    /// On a Redis or Valkey.
    Redis(RedisConfig),
}

/// What a new key gets when the memory budget is used up by keys that still count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The key that would be full again soonest is evicted, from a strategy above its share if there is one.
    /// Exhausted keys are never evicted.
    #[default]
    Evict,
    /// Nothing makes room: the strategy's `on_store_failure` answers for new keys.
    Refuse,
}

/// A user of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name; `None` is the default user.
    pub username: Option<String>,
    /// The password.
    pub password: Secret,
}

/// What the sentinels are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentinel {
    /// The name that they know the master by.
    pub master_name: String,
    /// Who we are to them; `None` is their default user.
    pub login: Option<Login>,
}

/// How many Redis servers hold the keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    #[default]
    Single,
    /// A Redis Cluster.
    Cluster,
    /// A master that sentinels watch, and replace when it is lost.
    Sentinel,
}

impl RedisConfig {
    /// Nodes that a cluster is expected to have, whichever are named.
    const CLUSTER_NODES: usize = 16;

    /// Open files that so many workers need for their connections: each has one to every node, and so has the
    /// monitor; a new one may be there before the one that it replaces is closed. Besides, each worker has a timer
    /// for the calls that it waits for, and one for callers that wait for the next call.
    #[must_use]
    pub fn open_files(&self, workers: usize) -> usize {
        let nodes = match self.topology {
            Topology::Single | Topology::Sentinel => self.nodes.len(),
            Topology::Cluster => self.nodes.len().max(Self::CLUSTER_NODES),
        };
        2 * (workers + 1) * nodes + 2 * workers
    }
}
