//! Shorthands for strategies.

use std::sync::Arc;

use weir_core::algorithm::Algorithm;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};

/// Builds a strategy from limits: name, scope and algorithm.
pub fn strategy(name: &str, limits: &[(&str, &[Field], Algorithm)], policy: FailurePolicy) -> Strategy {
    let limit = |&(name, scope, algorithm): &(&str, &[Field], Algorithm)| Limit {
        name: name.into(),
        scope: Scope::new(scope),
        algorithm,
    };
    Strategy::new(name, limits.iter().map(limit).collect(), false, policy).unwrap()
}

/// Builds a strategy of the limits `limit-0`, `limit-1`, …, which all count by `scope`.
pub fn numbered(name: &str, scope: &[Field], algorithms: &[Algorithm]) -> Arc<Strategy> {
    let limits = numbered_limits(algorithms.iter().map(|&algorithm| (scope, algorithm)));
    Arc::new(Strategy::new(name, limits, false, FailurePolicy::Error).unwrap())
}

/// Builds the limits `limit-0`, `limit-1`, … from scope and algorithm.
pub fn numbered_limits(limits: impl IntoIterator<Item = (impl AsRef<[Field]>, Algorithm)>) -> Vec<Limit> {
    let numbered = limits.into_iter().enumerate();
    let limits = numbered.map(|(index, (scope, algorithm))| Limit {
        name: format!("limit-{index}").into(),
        scope: Scope::new(scope.as_ref()),
        algorithm,
    });
    limits.collect()
}
