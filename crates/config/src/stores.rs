//! The configuration types of the stores. The sections `store` and `redis` are read into them, and the stores trust
//! them.

mod secret;
mod tls;

pub use self::secret::{MAX_SECRET, Secret, SecretError};
pub use self::tls::{ClientFiles, Identity, TlsCheck, TlsError};

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
