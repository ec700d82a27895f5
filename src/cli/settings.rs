//! The options that stand for single values of the configuration.

use std::path::PathBuf;

use weir_config::{Config, ConfigErrors, ConfigOverrides};
use weir_store::tls;

/// Options of `serve`, and their variables. They are texts: the configuration checks all of them
/// together with the file, and reports all mistakes at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// The configuration file; without one, the built-in example is served
    #[arg(long, short, env = "WEIR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where gRPC listens [default: 127.0.0.1:8081]
    #[arg(long, env = "WEIR_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// The mode of the file of a Unix socket [default: 0660]
    #[arg(long, env = "WEIR_LISTEN_MODE", value_name = "MODE")]
    listen_mode: Option<String>,
    /// Where metrics and probes listen [default: 127.0.0.1:8080]
    #[arg(long, env = "WEIR_ADMIN", value_name = "ADDRESS")]
    admin: Option<String>,
    /// What serves HTTP/2: `fast` (our own) or `tonic` [default: fast]
    #[arg(long, env = "WEIR_TRANSPORT", value_name = "TRANSPORT")]
    transport: Option<String>,
    /// Threads that serve connections [default: one per core]
    #[arg(long, env = "WEIR_WORKERS", value_name = "COUNT")]
    workers: Option<String>,
    /// Whether server reflection is offered [default: true]
    #[arg(long, env = "WEIR_REFLECTION", value_name = "BOOL")]
    reflection: Option<String>,
    /// Whether the administration service is offered [default: false]
    #[arg(long, env = "WEIR_ADMIN_SERVICE", value_name = "BOOL")]
    admin_service: Option<String>,
    /// Whether requests may bring limits with their numbers along [default: false]
    #[arg(long, env = "WEIR_INLINE_LIMITS", value_name = "BOOL")]
    inline_limits: Option<String>,
    /// Whether a node whose store is away says that it is not ready: true or false [default: false]
    #[arg(long, env = "WEIR_READY_NEEDS_STORE", value_name = "BOOL")]
    ready_needs_store: Option<String>,
    /// How long calls are still served after SIGTERM while load balancers notice [default: 5s]
    #[arg(long, env = "WEIR_DRAIN_DELAY", value_name = "SPAN")]
    drain_delay: Option<String>,
    /// How long calls in flight may take to finish after that [default: 10s]
    #[arg(long, env = "WEIR_DRAIN_TIMEOUT", value_name = "SPAN")]
    drain_timeout: Option<String>,
    /// Where state lives: `memory`, or `redis://HOST:PORT`, several with commas [default: memory]
    #[arg(long, env = "WEIR_STORE", value_name = "STORE", hide_env_values = true)]
    store: Option<String>,
    /// Bytes that the memory store may use [default: 512MiB]
    #[arg(long, env = "WEIR_BUDGET", value_name = "SIZE")]
    budget: Option<String>,
    /// What a new key gets when that is used up: `evict` or `refuse` [default: evict]
    #[arg(long, env = "WEIR_WHEN_FULL", value_name = "POLICY")]
    when_full: Option<String>,
    /// Whether Redis is `single`, a `cluster`, or a master found by asking a `sentinel` [default: single]
    #[arg(long, env = "WEIR_TOPOLOGY", value_name = "TOPOLOGY")]
    topology: Option<String>,
    /// How long one decision may wait for Redis [default: 50ms]
    #[arg(long, env = "WEIR_DEADLINE", value_name = "SPAN")]
    deadline: Option<String>,
    /// How long connecting to Redis may take [default: 200ms]
    #[arg(long, env = "WEIR_CONNECT_TIMEOUT", value_name = "SPAN")]
    connect_timeout: Option<String>,
    /// Decisions that may wait for one Redis node, per worker [default: 4096]
    #[arg(long, env = "WEIR_MAX_WAITING", value_name = "COUNT")]
    max_waiting: Option<String>,
    /// The user to be on Redis; its password comes from WEIR_REDIS_PASSWORD or a file
    #[arg(long, env = "WEIR_REDIS_USERNAME", value_name = "NAME")]
    redis_username: Option<String>,
    /// A file that holds the password for Redis
    #[arg(long, env = "WEIR_REDIS_PASSWORD_FILE", value_name = "FILE")]
    redis_password_file: Option<String>,
    /// Certificates of the authorities to trust for rediss:// [default: those of the system]
    #[arg(long, env = "WEIR_REDIS_CA_FILE", value_name = "FILE")]
    redis_ca_file: Option<String>,
    /// The certificate to show to Redis
    #[arg(long, env = "WEIR_REDIS_CERT_FILE", value_name = "FILE")]
    redis_cert_file: Option<String>,
    /// The private key of that certificate
    #[arg(long, env = "WEIR_REDIS_KEY_FILE", value_name = "FILE")]
    redis_key_file: Option<String>,
    /// The name that the sentinels know the master by
    #[arg(long, env = "WEIR_REDIS_MASTER_NAME", value_name = "NAME")]
    redis_master_name: Option<String>,
    /// The user to be at the sentinels; its password comes from WEIR_REDIS_SENTINEL_PASSWORD or a file
    #[arg(long, env = "WEIR_REDIS_SENTINEL_USERNAME", value_name = "NAME")]
    redis_sentinel_username: Option<String>,
    /// A file that holds the password for the sentinels
    #[arg(long, env = "WEIR_REDIS_SENTINEL_PASSWORD_FILE", value_name = "FILE")]
    redis_sentinel_password_file: Option<String>,
    /// The secret of the keys in Redis, the same on all nodes; better given as its variable
    #[arg(long, env = "WEIR_KEY_SECRET", value_name = "TEXT", hide_env_values = true)]
    key_secret: Option<String>,
    /// The directory of Envoy's rate limit files, in the format of envoyproxy/ratelimit
    #[arg(long, env = "WEIR_ENVOY_CONFIG", value_name = "DIR")]
    envoy_config: Option<String>,
    /// Whether several of those files may have one domain in common [default: false]
    #[arg(long, env = "WEIR_ENVOY_MERGE_DOMAINS", value_name = "BOOL")]
    envoy_merge_domains: Option<String>,
}

impl Settings {
    /// The configuration: the file, or the built-in example, with single values replaced.
    pub(crate) fn load(self) -> Result<Config, ConfigErrors> {
        let overrides = ConfigOverrides {
            listen: self.listen,
            listen_mode: self.listen_mode,
            admin: self.admin,
            transport: self.transport,
            workers: self.workers,
            reflection: self.reflection,
            admin_service: self.admin_service,
            inline_limits: self.inline_limits,
            ready_needs_store: self.ready_needs_store,
            drain_delay: self.drain_delay,
            drain_timeout: self.drain_timeout,
            store: self.store,
            budget: self.budget,
            when_full: self.when_full,
            topology: self.topology,
            deadline: self.deadline,
            connect_timeout: self.connect_timeout,
            max_waiting: self.max_waiting,
            redis_username: self.redis_username,
            redis_password: secret("WEIR_REDIS_PASSWORD"),
            redis_password_file: self.redis_password_file,
            redis_ca_file: self.redis_ca_file,
            redis_cert_file: self.redis_cert_file,
            redis_key_file: self.redis_key_file,
            redis_master_name: self.redis_master_name,
            redis_sentinel_username: self.redis_sentinel_username,
            redis_sentinel_password: secret("WEIR_REDIS_SENTINEL_PASSWORD"),
            redis_sentinel_password_file: self.redis_sentinel_password_file,
            key_secret: self.key_secret,
            envoy_config: self.envoy_config,
            envoy_merge_domains: self.envoy_merge_domains,
            ..no_overrides()
        };
        match self.config {
            Some(file) => Config::load(file, &overrides),
            None => Config::built_in_with(&overrides),
        }
    }
}

/// The file as it is, with its certificates looked into.
pub(super) fn no_overrides() -> ConfigOverrides {
    ConfigOverrides { tls_check: Some(tls::check), ..ConfigOverrides::default() }
}

/// A variable that is no flag: everybody on the machine can read a command line.
#[allow(clippy::disallowed_methods)] // the command line may read the environment
fn secret(variable: &str) -> Option<String> {
    // What is not UTF-8 counts as empty, and is reported as that.
    std::env::var_os(variable).map(|value| value.into_string().unwrap_or_default())
}
