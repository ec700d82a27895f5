//! Strategies in a line.

use weir_core::algorithm::Algorithm;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};

/// A strategy of limits that are a name, what they count by, and how.
pub fn strategy(name: &str, limits: &[(&str, &[Field], Algorithm)], policy: FailurePolicy) -> Strategy {
    let limit = |&(name, scope, algorithm): &(&str, &[Field], Algorithm)| Limit {
        name: name.into(),
        scope: Scope::of(scope),
        algorithm,
    };
    Strategy::new(name, limits.iter().map(limit).collect(), false, policy).unwrap()
}
