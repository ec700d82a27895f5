//! Inline limits: strategies of one limit inside requests. They count by resource and consumer.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::{FailurePolicy, Field, Limit, Owner, Scope, Strategy, StrategyError, check_name};
use crate::algorithm::Algorithm;

/// Name of all inline limits together in metrics, and as an owner of keys.
pub const INLINE: &str = "inline";

/// The longest name of an inline limit, in bytes.
pub const MAX_INLINE_NAME: usize = 64;

/// Settings that all inline limits of a process share.
#[derive(Debug, Clone)]
pub struct InlineLimits {
    owner: Arc<Owner>,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { owner: Arc::new(Owner::of_strategy(INLINE)) }
    }
}

impl InlineLimits {
    /// Owner of the keys of all inline limits.
    #[must_use]
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// The strategy of an inline limit. Two with one name and engine share their keys, even if their numbers differ.
    pub fn strategy(
        &self,
        name: &str,
        algorithm: Algorithm,
        on_store_failure: FailurePolicy,
    ) -> Result<Strategy, StrategyError> {
        check_name(name)?;
        let scope = Scope::of(&[Field::Resource, Field::Consumer]);
        let limit = Limit { name: name.into(), scope, algorithm };
        // No configured strategy has a `=` in its name, so the keys are separate from theirs.
        let strategy =
            Strategy::unchecked(&format!("{INLINE}={name}"), vec![limit], false, on_store_failure)?;
        Ok(strategy.of_family(family(name)).owned_by(&self.owner))
    }
}

/// The name of the inline limit that decides under this strategy, if it is one.
#[must_use]
pub fn inline_name(strategy: &str) -> Option<&str> {
    strategy.strip_prefix(INLINE).and_then(|rest| rest.strip_prefix('='))
}

/// A number derived from the name. If two names share it, their decisions only wait for one another.
fn family(name: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Rate;
    use weir_units::Micros;

    #[test]
    fn numbers_are_no_part_of_what_a_limit_is() {
        let limits = InlineLimits::default();
        let bucket = |burst| {
            let rate = Rate { count: 1, period: Micros::from_secs(1) };
            limits.strategy("api", Algorithm::bucket(burst, rate).unwrap(), FailurePolicy::Error).unwrap()
        };
        let (one, other) = (bucket(1), bucket(2));
        assert_eq!(one.family(), other.family());
        assert_eq!(one.identity(0), other.identity(0));
        assert_ne!(one.id(), other.id());
        assert!(check_name(one.name()).is_err(), "no configured strategy has this name");
    }
}
