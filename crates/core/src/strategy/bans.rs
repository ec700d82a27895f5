//! Bans: a limit that has denied a caller often may say that all of this caller's calls are denied for a time.
//!
//! A ban is about what the limit counts by: under `per: [resource, consumer]` a consumer is banned from one resource.

use super::{Field, Scope};
use weir_units::Micros;

/// The most denials that a ban may need.
pub const MAX_BAN_AFTER: u64 = 1_000_000;

/// The most attributes that a limit with bans may count by: names of bans are bounded.
const MAX_BAN_ATTRIBUTES: usize = 1;

/// Condition under which a limit bans a caller, and duration of the ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanTerms {
    /// After so many denials, at least 1.
    pub after: u32,
    /// Within this time.
    pub within: Micros,
    /// Duration of the ban.
    pub lasts: Micros,
}

/// The terms of one limit of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitBan {
    /// Index of the limit.
    pub limit: usize,
    /// The terms.
    pub terms: BanTerms,
}

/// Reason that a limit cannot ban its callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BanError {
    /// Consumers share its counters.
    #[error(
        "the limit counts by {0}, so that consumers share its counters: a ban needs a limit that counts by consumer"
    )]
    Shared(String),
    /// The name of a ban would be too long.
    #[error("the limit counts by {0} attributes: one with a ban may count by at most {MAX_BAN_ATTRIBUTES}")]
    Attributes(usize),
    /// The limit denies nothing.
    #[error(
        "a limit in shadow mode denies nothing, so nobody would be banned; remove `ban` or `mode: shadow`"
    )]
    Shadow,
}

impl BanTerms {
    /// Checks if a limit with this scope can ban its callers.
    pub fn check(scope: &Scope, is_shadow: bool) -> Result<(), BanError> {
        let attributes = scope.fields().iter().filter(|field| matches!(field, Field::Attribute(_))).count();
        match scope.has(Field::Consumer) {
            false => Err(BanError::Shared(scope.to_string())),
            true if attributes > MAX_BAN_ATTRIBUTES => Err(BanError::Attributes(attributes)),
            true if is_shadow => Err(BanError::Shadow),
            true => Ok(()),
        }
    }
}
