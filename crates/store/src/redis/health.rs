//! Health of the Redis nodes, for operators and metrics. Nothing here affects routing.
//!
//! The monitor (one per process, apart from the workers) probes every master periodically with charges ([`probe`]),
//! compares the secret with other nodes of Weir ([`fingerprint`]), and checks whether Redis evicts keys
//! ([`evictions`]). The results are kept on a board, which logs changes.

mod acl;
mod ask;
mod board;
mod breaker_prober;
mod data_marker;
mod engines;
mod evictions;
mod fingerprint;
mod monitor;
mod probe;
mod remedy;
mod rights;
mod rules;
mod streak;
mod tags;

use std::fmt;

pub use self::acl::acl_line;
pub use self::board::StoreHealth;
pub(super) use self::breaker_prober::keep_probing_breakers;
pub use self::engines::{EnginesInUse, Uses};
pub(super) use self::monitor::monitor;
pub use self::rules::RulesDigest;
pub use self::streak::Since;

/// A snapshot of the store's health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Every node that is probed.
    pub nodes: Vec<NodeStatus>,
    /// Problems that make some or all decisions fail.
    pub failures: Vec<Trouble>,
    /// Problems that degrade answers while decisions are still made.
    pub notes: Vec<Trouble>,
    /// How often the breaker of any node has opened, those of nodes that are gone among them.
    pub breakers_opened: u64,
    /// The capabilities that no node has of those that need them, by name. Decisions are none of them.
    pub missing: Vec<&'static str>,
    /// True if another node of Weir uses another `key_secret`.
    pub other_key_secret: bool,
    /// True if another node of Weir has other limits under the same names.
    pub other_rules: bool,
}

/// The health of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its address.
    pub node: String,
    /// True if it is known to decide.
    pub up: bool,
    /// True while its calls fail, and rate limits are answered by their policy at once.
    pub breaker_open: bool,
    /// How often that has begun.
    pub breaker_opened: u64,
    /// Number of keys it evicted since this process first checked.
    pub evicted_keys: u64,
    /// True if its `maxmemory-policy` evicts keys.
    pub may_evict: bool,
}

/// A problem of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The problem, as a sentence.
    pub what: String,
    /// Its start.
    pub since: Since,
    /// Its cause, as far as it is known.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
}

impl StoreStatus {
    /// True if at least one node decides.
    #[must_use]
    pub fn can_decide(&self) -> bool {
        self.nodes.iter().any(|node| node.up)
    }
}

impl fmt::Display for Trouble {
    /// Formats it without its start.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reason, remedy, .. } = self;
        write!(f, "{what}: {reason}; what to do: {remedy}")
    }
}
