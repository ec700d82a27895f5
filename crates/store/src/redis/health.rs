//! What is known of the Redis nodes, for people and for metrics. Nothing here changes where calls go.
//!
//! The monitor (one per process, apart from the workers) charges every master now and then ([`probe`]), compares the
//! secret with other nodes of Weir ([`fingerprint`]), and looks whether Redis evicts keys ([`evictions`]). What it
//! finds stands on a board, which logs what changes.

mod ask;
mod board;
mod engines;
mod evictions;
mod fingerprint;
mod monitor;
mod probe;
mod probe_leases;
mod probed;
mod remedy;
mod rights;
mod streak;
mod tags;

use std::fmt;

pub use self::board::StoreHealth;
pub use self::engines::{EngineSet, EnginesInUse};
pub(super) use self::monitor::monitor;
pub use self::streak::Since;

/// What is known of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Every node that is probed.
    pub nodes: Vec<NodeStatus>,
    /// Why some or all decisions cannot be made.
    pub failures: Vec<Trouble>,
    /// What makes answers worse while decisions are made.
    pub notes: Vec<Trouble>,
    /// Whether another node has another `key_secret`.
    pub other_key_secret: bool,
}

/// What is known of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its address.
    pub node: String,
    /// Whether it decides, as far as is known.
    pub up: bool,
    /// Keys that it evicted since this process looked first.
    pub evicted_keys: u64,
    /// Whether its policy is one that evicts.
    pub may_evict: bool,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What it is, as a sentence.
    pub what: String,
    /// Since when.
    pub since: Since,
    /// Why, as far as is known.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl StoreStatus {
    /// Whether some node decides.
    #[must_use]
    pub fn can_decide(&self) -> bool {
        self.nodes.iter().any(|node| node.up)
    }
}

impl fmt::Display for Trouble {
    /// Without the time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reason, remedy, .. } = self;
        write!(f, "{what}: {reason}; what to do: {remedy}")
    }
}
