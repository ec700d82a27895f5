//! Answers when the store cannot decide.

use crate::algorithm::Share;

/// Failure policy: the answer when the store cannot decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The call goes ahead, marked degraded.
    Allow,
    /// The call is refused, marked degraded.
    Deny,
    /// The caller gets an error: UNAVAILABLE.
    #[default]
    Error,
    /// The node decides by itself, with a part of each limit.
    Local(LocalPolicy),
}

/// Policy of a node that decides by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalPolicy {
    /// The part of each limit.
    pub share: Share,
    /// Answer for new keys when the node has no memory for them.
    pub when_full: WhenLocalFull,
}

/// The answer for new keys when the budget of local states is used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenLocalFull {
    /// The call goes ahead. What this admits has no bound.
    Allow,
    /// The call is refused.
    Deny,
    /// The caller gets an error: UNAVAILABLE.
    #[default]
    Error,
}
