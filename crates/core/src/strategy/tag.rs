//! Hash tags: the part that all keys of one decision share, so that they are in one slot.
//!
//! The tag is the fields that all scopes share: `[resource]` with `[resource, consumer]` gives the
//! resource, only `[resource, consumer]` gives both, so that such strategies spread over a whole
//! cluster. Scopes that share nothing fit one slot only under a tag per strategy.

use super::{Field, Limit, Scope, StrategyError};

/// Content of the hash tag of a strategy's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tag {
    /// Fields of the request.
    Fields(Scope),
    /// The strategy itself: all its keys are in one slot.
    Strategy(Box<str>),
}

impl Tag {
    /// The tag of a strategy's limits. A single limit for all (`per: []`) is one key, so it needs no `single_slot`.
    pub fn new(strategy: &str, limits: &[Limit], single_slot: bool) -> Result<Self, StrategyError> {
        let everywhere = |field: &&Field| limits.iter().all(|limit| limit.scope.fields().contains(field));
        let first = limits.first().map(|limit| limit.scope.fields()).unwrap_or_default();
        let shared: Vec<Field> = first.iter().filter(everywhere).cloned().collect();
        let one_key_each = limits.iter().all(|limit| limit.scope.fields().is_empty());
        if single_slot || one_key_each {
            return Ok(Self::Strategy(strategy.into()));
        }
        if shared.is_empty() {
            let scopes: Vec<String> = limits.iter().map(|limit| limit.scope.to_string()).collect();
            return Err(StrategyError::NoCommonField(scopes.join(" and ")));
        }
        Ok(Self::Fields(Scope::new(&shared)))
    }
}
