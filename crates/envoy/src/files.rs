//! Envoy's files: a directory in the format of envoyproxy/ratelimit.
//!
//! ```text
//!   directory ── files ── keys        rejects unknown keys and keys in wrong places
//!   (names,      (a tree  descriptor  texts, numbers and matchers, in the reference's words
//!    sizes)       each)   rate_limit  └── crate::rules::Descriptor ── compile ── Domains
//!        └── watch: reads again what has changed, and swaps all domains at once, or none; with isolate,
//!                   each domain that is good
//! ```

mod descriptor;
mod directory;
mod envoy_files;
mod errors;
mod folder;
mod isolate;
mod keys;
mod metadata;
mod node;
mod rate_limit;
mod rule_count;
mod scalar;
mod watch;

pub use directory::{MAX_ENVOY_FILE, MAX_ENVOY_FILES};
pub use envoy_files::EnvoyFiles;
pub use errors::{EnvoyError, EnvoyErrors};
pub use folder::EnvoyFolder;
pub use isolate::{DomainSet, GoodDomains, RefusedDomain};
pub use rule_count::RuleCount;
pub use watch::{CurrentDomains, EnvoySource, FilesPoll};

/// The most descriptors for each rule that there may be.
const MAX_DESCRIPTORS_PER_RULE: usize = 10;

/// Maximum nesting depth of descriptors. A control plane makes a level of each condition of a route.
pub const MAX_ENVOY_LEVELS: usize = 32;
