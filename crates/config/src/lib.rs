//! The configuration, parsed once: a [`Config`] that exists is complete and need not be checked again.
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
mod concurrency;
mod envoy;
mod errors;
mod fields;
mod groups;
mod key_share;
mod limits;
mod listen;
mod log;
mod login;
mod nodes;
mod overrides;
mod overrides_section;
mod patterns;
mod quantities;
mod queues;
mod read;
mod redis;
mod resources;
mod schema;
mod secret;
mod server;
mod shadows;
mod store;
mod stores;
mod strategies;
mod tree;
mod unix_path;
mod usage;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use weir_core::key::{KeySecret, Namespace};
use weir_core::queue::QueueRules;
use weir_core::strategy::Rules;
use weir_units::Micros;

pub use self::limits::MAX_BATCH_BYTES;
pub use envoy::{
    CurrentDomains, EnvoyConfig, EnvoyError, EnvoyErrors, EnvoyFiles, EnvoySource, Look, MAX_DESCRIPTORS,
    MAX_ENVOY_FILE, MAX_ENVOY_FILES,
};
pub use errors::{ConfigError, ConfigErrors, MAX_ERRORS, MistakePlace, Position};
pub use key_share::KeyShare;
pub use listen::ListenAddress;
pub use log::{DecisionLogConfig, LogTarget};
pub use overrides::ConfigOverrides;
pub use quantities::{rate_of, span};
pub use queues::MAX_QUEUE_MESSAGE;
pub use read::{Checked, EXAMPLE, MAX_FILE};
pub use schema::schema;
pub use stores::{
    ClientFiles, Identity, Login, MAX_SECRET, MemoryConfig, RedisConfig, Secret, SecretError, Sentinel,
    StoreConfig, TlsCheck, TlsError, Topology, WhenFull,
};
pub use unix_path::{MAX_SOCKET_PATH, UnixPathError, unix_path};

/// All settings of a service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Sockets, workers and bounds.
    pub server: ServerConfig,
    /// Where state lives.
    pub store: StoreConfig,
    /// The secret of the hash tags; `None` means the built-in one, which `serve` warns about on Redis.
    pub key_secret: Option<KeySecret>,
    /// The first part of every key in Redis; the store's configuration has the same.
    pub namespace: Namespace,
    /// Strategies and the resources they are the default of.
    pub rules: Rules,
    /// Bounded queues.
    pub queues: QueueRules,
    /// Envoy's rate limit service.
    pub envoy: EnvoyConfig,
    /// What is kept of decisions.
    pub usage: UsageConfig,
    /// The sentence on denial.
    pub messages: DenialMessages,
    /// Which decisions are logged.
    pub decision_log: DecisionLogConfig,
    /// Where the configuration was read from; `None` is the built-in example.
    pub source: Option<PathBuf>,
}

/// What serves HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportKind {
    /// `weir_grpc`: from bytes to bytes.
    #[default]
    Fast,
    /// tonic's own server, over hyper and h2.
    Tonic,
}

/// Sockets, workers and bounds of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where gRPC listens. Port 0 picks a free one.
    pub listen: ListenAddress,
    /// The mode of the file, where that is a Unix socket.
    pub listen_mode: u32,
    /// Where `/metrics`, `/livez` and `/readyz` listen.
    pub admin: SocketAddr,
    /// What serves connections.
    pub transport: TransportKind,
    /// Single-threaded runtimes that serve connections; 0 means one per core.
    pub workers: usize,
    /// Whether server reflection is offered.
    pub reflection: bool,
    /// Whether `weir.v1.AdminService` is served, to all clients of `listen`.
    pub admin_service: bool,
    /// Whether requests may bring limits with their numbers along.
    pub inline_limits: bool,
    /// Whether a node whose store is away says that it is not ready.
    pub ready_needs_store: bool,
    /// How long calls are still served after SIGTERM, while load balancers learn that the server is not ready.
    pub drain_delay: Micros,
    /// How long calls in flight may take to finish after that.
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
    /// Open calls of streaming methods other than ShouldAllowStream, on one connection.
    pub max_side_streams: usize,
    /// Open calls of all streaming methods, of all connections.
    pub max_open_streams: usize,
    /// Bytes of the headers of one call.
    pub max_header_bytes: u32,
    /// Bytes of one message.
    pub max_message_bytes: usize,
    /// Streams that the client has reset before they were looked at; then its connection ends.
    pub max_pending_resets: usize,
    /// Streams that we have reset for faults of the client; then its connection ends.
    pub max_local_resets: usize,
    /// Bytes that all connections together may hold: of open calls, of messages that are incomplete or wait for their decisions,
    /// of retained headers, and of answers that are not sent yet.
    pub max_buffered_bytes: usize,
    /// How long a new connection may take to begin to speak HTTP/2.
    pub handshake_timeout: Micros,
    /// How long the first message of a call may take to begin.
    pub first_message_timeout: Micros,
    /// Between two questions to a peer whether it is still there.
    pub keepalive_interval: Micros,
    /// How long it may take to answer that.
    pub keepalive_timeout: Micros,
    /// How old a connection may become, give or take a tenth; `None` is as old as it likes.
    pub max_connection_age: Option<Micros>,
    /// How long the calls of a connection may take to finish once it has reached its age.
    pub max_connection_age_grace: Micros,
}

/// What is kept of decisions, and who may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageConfig {
    /// Whether `weir.v1.UsageService` is served, to all clients of `listen`.
    pub service: bool,
    /// What this node is called; `None` is the name of its host.
    pub node: Option<String>,
    /// Whether nodes on one Redis show one another what they have counted.
    pub shared: bool,
    /// Of how many calls the consumer of one is looked at; 0 is of none.
    pub sample: u32,
    /// Whether what each second counted is written to RedisTimeSeries, on the Redis of the store.
    pub timeseries: bool,
}

/// The sentences for people. `{wait}` is "4 seconds" (or "1 second"), `{seconds}` the bare number,
/// `{cost}` and `{limit}` the numbers of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialMessages {
    /// When waiting helps.
    pub limited: String,
    /// When waiting helps and the wait is not known: until another caller releases a lease.
    pub unknown: String,
    /// When the cost is above a limit.
    pub never: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 8081))),
            listen_mode: 0o660,
            admin: SocketAddr::from(([127, 0, 0, 1], 8080)),
            transport: TransportKind::Fast,
            workers: 0,
            reflection: true,
            admin_service: false,
            inline_limits: false,
            ready_needs_store: false,
            drain_delay: Micros::from_secs(5),
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
            max_side_streams: 64,
            max_open_streams: 32_768,
            max_header_bytes: 16 << 10,
            max_message_bytes: 64 << 10,
            max_pending_resets: 1024,
            max_local_resets: 1024,
            max_buffered_bytes: 64 << 20,
            handshake_timeout: Micros::from_secs(10),
            first_message_timeout: Micros::from_secs(10),
            keepalive_interval: Micros::from_secs(20),
            keepalive_timeout: Micros::from_secs(10),
            max_connection_age: None,
            max_connection_age_grace: Micros::from_secs(10),
        }
    }
}

impl Default for UsageConfig {
    fn default() -> Self {
        Self { service: true, node: None, shared: true, sample: 16, timeseries: false }
    }
}

impl Default for DenialMessages {
    fn default() -> Self {
        Self {
            limited: "Rate limit exceeded. Try again in {wait}".to_owned(),
            unknown: "All {limit} permits are in use. Try again when one is free".to_owned(),
            never: "Rate limit exceeded. A cost of {cost} is above the limit of {limit} and can never pass"
                .to_owned(),
        }
    }
}
