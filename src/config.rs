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
//!
//!   envoy: the same tree, read as the rate limit files of envoyproxy/ratelimit ── envoy::Domains
//! ```
//!
//! [`schema`] says the same to editors.

mod access;
mod address;
mod algorithms;
mod aliases;
mod envoy;
mod errors;
mod fields;
mod limits;
mod login;
mod nodes;
mod overrides;
mod overrides_section;
mod patterns;
mod quantities;
mod read;
mod redis;
mod resources;
mod schema;
mod secret;
mod server;
mod store;
mod strategies;
mod tree;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use envoy::{
    CurrentDomains, EnvoyConfig, EnvoyError, EnvoyErrors, EnvoyFiles, EnvoySource, Look, MAX_DESCRIPTORS,
    MAX_ENVOY_FILE, MAX_ENVOY_FILES,
};
pub use errors::{ConfigError, ConfigErrors, MAX_ERRORS, Place, Position};
pub use overrides::Overrides;
pub use read::{EXAMPLE, MAX_FILE};
pub use schema::schema;
pub use secret::Secret;

use crate::key::KeySecret;
use crate::strategy::Rules;
use crate::tls::ClientFiles;
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
    /// Envoy's rate limit service.
    pub envoy: EnvoyConfig,
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
    /// What one connection, and all of them, may ask for.
    pub limits: ServerLimits,
}

/// Bounds of what callers can make the server hold or do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Open connections; further ones are closed at once.
    pub max_connections: usize,
    /// Calls in flight on one connection.
    pub max_streams: u32,
    /// Bytes of the headers of one call.
    pub max_header_bytes: u32,
    /// Bytes of one message.
    pub max_message_bytes: usize,
    /// Streams that the client has reset before they were looked at; then its connection ends.
    pub max_pending_resets: usize,
    /// Streams that we have reset for faults of the client; then its connection ends.
    pub max_local_resets: usize,
    /// How long a new connection may take to begin to speak HTTP/2.
    pub handshake_timeout: Micros,
    /// Between two questions to a peer whether it is still there.
    pub keepalive_interval: Micros,
    /// How long it may take to answer that.
    pub keepalive_timeout: Micros,
    /// How old a connection may become, give or take a tenth; `None` is as old as it likes.
    pub max_connection_age: Option<Micros>,
}

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
            limits: ServerLimits::default(),
        }
    }
}

impl Default for ServerLimits {
    /// `docs/configuration.md` gives the reason of each.
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_streams: 1024,
            max_header_bytes: 16 << 10,
            max_message_bytes: 64 << 10,
            max_pending_resets: 1024,
            max_local_resets: 1024,
            handshake_timeout: Micros::from_secs(10),
            keepalive_interval: Micros::from_secs(20),
            keepalive_timeout: Micros::from_secs(10),
            max_connection_age: None,
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
            coalesce: true,
            login: None,
            tls: None,
            sentinel: None,
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
