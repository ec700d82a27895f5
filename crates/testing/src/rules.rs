//! A shorthand for strategies.

use weir_core::algorithm::Algorithm;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};

/// Builds a strategy from limits: name, scope and algorithm.
pub fn strategy(name: &str, limits: &[(&str, &[Field], Algorithm)], policy: FailurePolicy) -> Strategy {
    let limit = |&(name, scope, algorithm): &(&str, &[Field], Algorithm)| Limit {
        name: name.into(),
        scope: Scope::of(scope),
        algorithm,
    };
    Strategy::new(name, limits.iter().map(limit).collect(), false, policy).unwrap()
}
