//! What the stores are configured with. The sections `store` and `redis` are read into these types, and the stores
//! trust them.

mod secret;
mod tls;

use weir_core::key::{Namespace, Placements};
use weir_units::Micros;

pub use self::secret::{MAX_SECRET, Secret, SecretError};
pub use self::tls::{ClientFiles, Identity, TlsCheck, TlsError};

/// Where state lives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // a process has one of these
pub enum StoreConfig {
    /// In this process.
    Memory(MemoryConfig),
    /// On a Redis or Valkey.
    Redis(RedisConfig),
}

/// Bounds of the memory store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Bytes that keys may use.
    pub budget: usize,
    /// What a new key gets when the budget is used up and nothing has expired.
    pub when_full: WhenFull,
    /// Bytes that a strategy or a domain may hold when the budget is nearly used up; `None` is the budget divided by
    /// their number, and at least a tenth of it.
    pub share: Option<usize>,
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

/// How Redis is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// The first part of every key.
    pub namespace: Namespace,
    /// Where routing groups lie that must lie apart.
    pub placements: Placements,
    /// Addresses, `redis://host:port` (or `rediss:`) each: the server, seeds of the cluster, or sentinels.
    pub nodes: Vec<String>,
    /// Which of these they are.
    pub topology: Topology,
    /// How long one decision may wait for the store.
    pub deadline: Micros,
    /// How long connecting may take.
    pub connect_timeout: Micros,
    /// Decisions that may wait for one node, per worker.
    pub max_waiting: usize,
    /// How long a denial is answered without asking Redis again, at most; 0 asks every time.
    pub denials_max_age: Micros,
    /// Whether calls for the same keys that come while one is under way are decided together afterwards.
    pub coalesce: bool,
    /// Who we are to Redis; `None` is its default user.
    pub login: Option<Login>,
    /// Certificates, if Redis is reached over TLS; then nothing is ever sent without.
    pub tls: Option<ClientFiles>,
    /// What the sentinels are asked, where `nodes` are sentinels.
    pub sentinel: Option<Sentinel>,
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

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { budget: 512 << 20, when_full: WhenFull::Evict, share: None }
    }
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

impl Default for RedisConfig {
    /// The deadline is what a caller can be made to wait when Redis hangs; a healthy one answers in a
    /// hundredth of it.
    fn default() -> Self {
        Self {
            namespace: Namespace::DEFAULT,
            placements: Placements::default(),
            nodes: Vec::new(),
            topology: Topology::Single,
            deadline: Micros::from_millis(50),
            connect_timeout: Micros::from_millis(200),
            max_waiting: 4096,
            denials_max_age: Micros::from_secs(1),
            coalesce: true,
            login: None,
            tls: None,
            sentinel: None,
        }
    }
}
