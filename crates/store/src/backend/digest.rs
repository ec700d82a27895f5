//! What a node tells others of its rules.

use std::collections::BTreeMap;

/// Digest of the strategies in this node's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesDigest {
    /// The name of this node, which no other process has.
    pub node: String,
    /// A number for each strategy, by its name.
    pub strategies: BTreeMap<String, u64>,
}
