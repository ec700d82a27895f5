//! The configuration, parsed once: whoever holds a [`Config`] need not check it again.
//!
//! One YAML file; `WEIR_*` variables and flags override single values. Every mistake of a file is
//! reported in one run, with line, column and reason.
//!
//! ```text
//!   text ── tree ── fields ── server, store, strategies (algorithms, access), ── Config
//!           nodes   typed      resources, overrides, access: a file per section;
//!           with    values,    values, quantities, patterns and address say what
//!           places  leftovers  a single text means
//!                   └── every mistake goes into one report ── ConfigErrors
//! ```

mod access;
mod address;
mod algorithms;
mod errors;
mod fields;
mod overrides;
mod overrides_section;
mod patterns;
mod quantities;
mod read;
mod resources;
mod server;
mod store;
mod strategies;
mod tree;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use errors::{ConfigError, ConfigErrors, MAX_ERRORS, Place, Position};
pub use overrides::Overrides;
pub use read::{EXAMPLE, MAX_FILE};

use crate::key::KeySecret;
use crate::strategy::Rules;
use crate::units::Micros;

/// Everything that a running service is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Sockets, workers and bounds.
    pub server: ServerConfig,
    /// Where state lives.
    pub store: StoreConfig,
    /// The secret of the hash tags; `None` means the built-in one, which `serve` warns about on Redis.
    pub key_secret: Option<KeySecret>,
    /// Strategies and the resources they are the default of.
    pub rules: Rules,
    /// The sentence on denial.
    pub messages: Messages,
    /// Where the configuration was read from; `None` is the built-in example.
    pub source: Option<PathBuf>,
}

/// Sockets, workers and bounds of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where gRPC listens. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// Where `/metrics`, `/livez` and `/readyz` listen.
    pub admin: SocketAddr,
    /// Single-threaded runtimes that serve connections; 0 means one per core.
    pub workers: usize,
    /// Whether server reflection is offered.
    pub reflection: bool,
    /// Whether `weir.v1.AdminService` is offered, to whoever reaches `listen`.
    pub admin_service: bool,
    /// How long calls in flight may take to finish after SIGTERM.
    pub drain_timeout: Micros,
}

/// Where state lives.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What a new key gets when the budget is used up and nothing has lapsed.
    pub when_full: WhenFull,
}

/// What a new key gets when the memory budget is used up by keys that still count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// A key that is not exhausted and soonest as good as new makes room; exhausted keys never do.
    #[default]
    Evict,
    /// Nothing makes room: the strategy's `on_store_failure` answers for new keys.
    Refuse,
}

/// How Redis is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// Addresses, `redis://host:port` each: the server, or seeds of the cluster.
    pub nodes: Vec<String>,
    /// Whether they are one server or a cluster.
    pub topology: Topology,
    /// How long one decision may wait for the store.
    pub deadline: Micros,
    /// How long connecting may take.
    pub connect_timeout: Micros,
    /// Decisions that may wait for one node, per worker.
    pub max_waiting: usize,
    /// How long a denial is answered without asking Redis again, at most; 0 asks every time.
    pub denials_max_age: Micros,
}

/// How many Redis servers hold the keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    #[default]
    Single,
    /// A Redis Cluster.
    Cluster,
}

/// The sentences for people. `{wait}` is "4 seconds" (or "1 second"), `{seconds}` the bare number,
/// `{cost}` and `{limit}` the numbers of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messages {
    /// When waiting helps.
    pub limited: String,
    /// When the cost is above a limit.
    pub never: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8081)),
            admin: SocketAddr::from(([127, 0, 0, 1], 8080)),
            workers: 0,
            reflection: true,
            admin_service: false,
            drain_timeout: Micros::from_secs(10),
        }
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { budget: 512 << 20, when_full: WhenFull::Evict }
    }
}

impl Default for RedisConfig {
    /// The deadline is what a caller can be made to wait when Redis hangs; a healthy one answers in a
    /// hundredth of it.
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            topology: Topology::Single,
            deadline: Micros::from_millis(50),
            connect_timeout: Micros::from_millis(200),
            max_waiting: 4096,
            denials_max_age: Micros::from_secs(1),
        }
    }
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            limited: "Rate limit exceeded. Try again in {wait}".to_owned(),
            never: "Rate limit exceeded. A cost of {cost} is above the limit of {limit} and can never pass"
                .to_owned(),
        }
    }
}
