//! Mistakes of strategies, and names that the configuration does not have.

use super::scope::MAX_ATTRIBUTES;
use crate::algorithm::MAX_LIMITS;
use crate::near::or_near;

/// Reason that a list of limits cannot be a strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// A name that cannot be part of a key.
    #[error("the name `{0}` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /")]
    Name(String),
    /// No limits.
    #[error("a strategy needs at least one limit")]
    NoLimits,
    /// No enforced limit.
    #[error(
        "every limit is in shadow mode, so nothing is enforced; a strategy needs a limit that is, or it is listed as \
         `shadow` of another one"
    )]
    NothingEnforced,
    /// Too many limits.
    #[error("a strategy has at most {MAX_LIMITS} limits; this one has {0}")]
    TooManyLimits(usize),
    /// Two limits with the same name.
    #[error("two limits are named `{0}`")]
    DuplicateLimit(String),
    /// A name that no attribute can have.
    #[error(
        "`{0}` is no name of an attribute: it must be 1 to 64 of the characters a-z 0-9 _ -, and begin with \
         a letter"
    )]
    Attribute(String),
    /// Too many attributes.
    #[error("a request has at most {MAX_ATTRIBUTES} attributes; the limits of this strategy count by {0}")]
    TooManyAttributes(usize),
    /// Scopes without a common field.
    #[error(
        "the scopes {0} have no field in common, so their counters cannot be decided in one atomic \
         step; add `single_slot: true` to keep everything of this strategy in one slot of one node, \
         or give all limits a common field"
    )]
    NoCommonField(String),
}

/// A name that the configuration does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No strategy of that name.
    #[error("strategy: there is no strategy `{name}`{}", or_near("similar", near))]
    Strategy {
        /// The requested name.
        name: String,
        /// At most three configured names that look like it.
        near: Vec<String>,
    },
    /// No pattern matches the resource, and the request names no strategy.
    #[error(
        "resource: no pattern of the configuration matches `{name}`; name a strategy in the request{}",
        or_near("configured", near)
    )]
    Resource {
        /// The requested name.
        name: String,
        /// At most three configured strategies.
        near: Vec<String>,
    },
}
