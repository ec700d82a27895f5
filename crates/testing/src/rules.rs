//! Shorthands for strategies.

use std::sync::Arc;

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

/// Builds a strategy of the limits `limit-0`, `limit-1`, …, which all count by `scope`.
pub fn numbered(name: &str, scope: &[Field], algorithms: &[Algorithm]) -> Arc<Strategy> {
    let limit = |(index, &algorithm): (usize, &Algorithm)| Limit {
        name: format!("limit-{index}").into(),
        scope: Scope::of(scope),
        algorithm,
    };
    let limits = algorithms.iter().enumerate().map(limit).collect();
    Arc::new(Strategy::new(name, limits, false, FailurePolicy::Error).unwrap())
}
