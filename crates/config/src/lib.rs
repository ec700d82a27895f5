//! The configuration, parsed once: a [`Config`] that exists is complete and need not be checked again.
//!
//! One or more YAML files; `WEIR_*` variables and flags override single values. Every mistake of the files is
//! reported in one run, with file, line, column and reason.
//!
//! ```text
//!   files ── text ── tree ── merge ── expand ── one tree
//!
//!           tree ── fields ── server, store, strategies (algorithms, access), ── Config
//!           nodes   typed      resources, overrides, access: a file per section;
//!           with    values,    values, quantities, patterns and address parse
//!           places  leftovers  scalars
//!                   └── every mistake goes into one report ── ConfigErrors
//!
//!   table: the settings, each once ── their types and reader, the schema, the flags, the reference
//!
//!   foreign: the same tree, for features that read files in formats of others
//! ```
//!
//! [`schema`] describes the same as a JSON Schema, for editors.

mod access;
mod access_warnings;
mod accuracy;
mod address;
mod algorithms;
mod aliases;
mod alone;
mod approximate;
mod authorize;
mod bans;
mod callers;
mod changes;
mod concurrency;
mod costs;
mod errors;
mod expand;
mod expanded_from;
mod exposure;
mod failure_policy;
mod feature_section;
mod feature_setting;
mod fields;
mod files;
mod fingerprint;
pub mod foreign;
mod given;
mod groups;
mod identity;
mod jwks;
mod key_share;
mod known_strategies;
mod listen;
mod live_numbers;
mod log;
mod login;
mod meanings;
mod merge;
mod node_name;
mod nodes;
mod origin;
mod overrides;
mod overrides_section;
mod patterns;
mod quantities;
mod read;
mod redis;
mod report_given;
mod resources;
mod rights;
mod schema;
mod scopes;
mod secret;
mod section_reader;
mod sections;
mod sentences;
mod server;
mod shadows;
mod short_numbers;
mod shorthand;
mod store;
mod stores;
mod strategies;
mod table;
mod tls;
mod tls_words;
mod tokens;
mod tree;
mod unit_words;
mod unix_path;
mod unreadable;
mod values;
mod watched_files;
mod yaml_node;

use std::path::PathBuf;
use std::sync::Arc;

use weir_core::key::{KeySecret, Namespace};
use weir_core::strategy::Rules;

pub use alone::ServesAlone;
pub use authorize::{AuthorizeRule, ListEntry};
pub use callers::{CallerPattern, MAX_CALLER, is_claim, is_dns_name, is_spiffe_id, is_token_name};
pub use errors::{ConfigError, ConfigErrors, MAX_ERRORS, MistakePlace, Position};
pub use expand::{MAX_VALUE_FILE, MAX_VALUE_FILES};
pub use expanded_from::VariableLookup;
pub use feature_section::{FeaturePort, FeatureSection, SectionSettings};
pub use feature_setting::{FeatureSetting, SettingForm, SettingGroup};
pub use files::{MAX_CONFIG_FILES, MAX_FILE, config_files};
pub use fingerprint::ConfigFingerprint;
pub use given::Outside;
pub use identity::{IdentityConfig, JwtIssuer, Network};
pub use jwks::{Jwk, JwtAlgorithm, read_jwks};
pub use key_share::KeyShare;
pub use listen::ListenAddress;
pub use live_numbers::{LimitNumbers, WrittenStrategies};
pub use log::{DecisionLogConfig, LogTarget};
pub use meanings::StrategyMeanings;
pub use origin::ConfigOrigin;
pub use overrides::{ConfigOverrides, PortTlsCheck};
pub use patterns::check_pattern;
pub use quantities::{rate_of, span, written_size};
pub use read::{Checked, EXAMPLE};
pub use rights::{AccessRight, CALLER_SERVICES, OPEN_SERVICES, RIGHTS, RightRow, RightSet, RuleList};
pub use schema::schema;
pub use section_reader::SectionReader;
pub use sections::{
    GivenKeys, NamedEntries, SchemaForm, SectionKey, SectionSpec, Suffices, mapping_schema, schema_with,
};
pub use short_numbers::MAX_NUMBERS;
pub use store::StoreConfig;
pub use stores::{
    ClientFiles, Identity, Login, MAX_SECRET, Secret, SecretError, Sentinel, TlsCheck, TlsError, Topology,
    WhenFull,
};
pub use table::{
    AdminPath, Applies, CrlConfig, DenialMessages, MAX_BATCH_BYTES, MemoryConfig, Plaintext, RedisConfig,
    ServerConfig, ServerLimits, Setting, SettingChange, TlsConfig, ValueKind, reference, reference_table,
    settings,
};
pub use tls::TRUST_DOMAINS;
pub use tls_words::{ClientAuth, CrlDepth, CrlExpired, CrlUnknown, TlsVersion};
pub use tokens::{TokenEntry, read_tokens};
pub use unix_path::{MAX_SOCKET_PATH, UnixPathError, unix_path};
pub use unreadable::unreadable;
pub use watched_files::{FilesSnapshot, Settling};

/// All settings of a service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Sockets, workers and bounds.
    pub server: ServerConfig,
    /// The store of the state.
    pub store: StoreConfig,
    /// The secret of the hash tags; `None` is the built-in one, which `serve` warns about on Redis.
    pub key_secret: Option<KeySecret>,
    /// The key prefix in Redis; the store's configuration has the same.
    pub namespace: Namespace,
    /// Strategies, and the resources that have them as default.
    pub rules: Rules,
    /// The rules of access; `None` if the file has no section `authorize`.
    pub authorize: Option<Vec<AuthorizeRule>>,
    /// The messages of denials.
    pub messages: DenialMessages,
    /// The decision log.
    pub decision_log: DecisionLogConfig,
    /// The files and directories of the configuration; none is the built-in example.
    pub sources: Vec<PathBuf>,
    /// The sections that features read.
    pub sections: Vec<FeatureSection>,
    /// The strategies as the file writes them, for live control; empty without it.
    pub written: Arc<WrittenStrategies>,
    /// The hash of all that was said, without secrets.
    pub fingerprint: ConfigFingerprint,
    /// The meaning of each strategy of the file, to be compared with other nodes.
    pub meanings: StrategyMeanings,
    /// The files to read again, with the overrides of the start; `None` if the configuration came from no file.
    pub origin: Option<ConfigOrigin>,
}

/// The HTTP/2 transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportKind {
    /// Our own, `weir_grpc`.
    #[default]
    Fast,
    /// tonic's own server, over hyper and h2.
    Tonic,
}
