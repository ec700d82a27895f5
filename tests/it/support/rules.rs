//! Strategies in a line.

use weir::algorithm::Algorithm;
use weir::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};

/// A strategy of limits that are a name, what they count by, and how.
pub(crate) fn strategy(
    name: &str,
    limits: &[(&str, &[Field], Algorithm)],
    policy: FailurePolicy,
) -> Strategy {
    let limit = |&(name, scope, algorithm): &(&str, &[Field], Algorithm)| Limit {
        name: name.into(),
        scope: Scope::of(scope),
        algorithm,
    };
    Strategy::new(name, limits.iter().map(limit).collect(), false, policy).unwrap()
}
