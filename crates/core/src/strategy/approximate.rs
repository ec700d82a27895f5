//! Strategies that nodes count on their own, within a bound (`approximate`): which can be counted so, and the bound.
//!
//! The bound is checked when the configuration is read, also against the limits of overrides. It is part of the names of
//! keys, so other numbers start full.

use std::sync::Arc;

use super::{Limit, Strategy};
use crate::algorithm::{Algorithm, Engine, Grid};
use crate::approximate::{ApproximateBound, ApproximateError};
use weir_units::Micros;

/// The shortest window that nodes can count on their own: they must hear of their places several times in each.
pub const MIN_APPROXIMATE_WINDOW: Micros = Micros::from_secs(1);

/// Bounds of the time between two pushes.
pub const MIN_SYNC: Micros = Micros(10_000);
/// The longest one.
pub const MAX_SYNC: Micros = Micros::from_secs(10);

/// Numbers of counting on the nodes, as they were configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApproximateNumbers {
    /// The most units above the limit in a window.
    pub max_over: u64,
    /// The number of nodes that may count.
    pub nodes: u64,
    /// Interval at which a node shows its counts.
    pub sync: Micros,
}

/// Rule for counting a strategy on the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApproximateRule {
    /// The bound, for the strategy's window.
    pub bound: ApproximateBound,
    /// Interval at which a node shows its counts.
    pub sync: Micros,
}

/// Reason that a strategy cannot be counted on the nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoApproximate {
    /// Not exactly one aligned window.
    #[error(
        "`approximate` is for a strategy of exactly one limit, which is a fixed_window with `window`, and without `anchored`, \
         `spread`, `calendar` and `count_denied`: only there all nodes know without asking when a counter starts again; {0}"
    )]
    Kind(String),
    /// A window that is too short.
    #[error(
        "`approximate` needs a window of at least {MIN_APPROXIMATE_WINDOW}, in which nodes hear of their places several times; \
         that of limit `{limit}` is {window}"
    )]
    Window {
        /// The limit.
        limit: Box<str>,
        /// The window.
        window: Micros,
    },
    /// A time between two pushes that is out of bounds.
    #[error("`sync` is {0}; it must be from {MIN_SYNC} to {MAX_SYNC}")]
    Sync(Micros),
    /// Numbers that are no bound, or not for this limit.
    #[error(transparent)]
    Bound(#[from] ApproximateError),
}

impl Strategy {
    /// The strategy, counted on the nodes.
    pub fn with_approximate(self, numbers: ApproximateNumbers) -> Result<Self, NoApproximate> {
        let rule = self.approximate_rule(numbers)?;
        Ok(Self { approximate: Some(Arc::new(rule)), ..self })
    }

    /// Returns the rule for counting on the nodes, if there is one.
    #[inline]
    pub fn approximate(&self) -> Option<&ApproximateRule> {
        self.approximate.as_deref()
    }

    /// Checks the bound again, as its limit has changed.
    pub(super) fn override_approximate(&mut self) -> Result<(), NoApproximate> {
        let Some(rule) = self.approximate() else { return Ok(()) };
        self.approximate = Some(Arc::new(self.approximate_rule(rule.numbers())?));
        Ok(())
    }

    fn approximate_rule(&self, numbers: ApproximateNumbers) -> Result<ApproximateRule, NoApproximate> {
        let ApproximateNumbers { max_over, nodes, sync } = numbers;
        let limit = self.only_window().map_err(NoApproximate::Kind)?;
        let window = long_enough(limit)?;
        if !(MIN_SYNC..=MAX_SYNC).contains(&sync) {
            return Err(NoApproximate::Sync(sync));
        }
        let bound = ApproximateBound::new(max_over, nodes, window)?;
        bound.check(limit.algorithm.limit())?;
        Ok(ApproximateRule { bound, sync })
    }

    /// Returns the single limit if it is an aligned window, otherwise the reason.
    fn only_window(&self) -> Result<&Limit, String> {
        match self.limits() {
            [] => Err("this one has permits".to_owned()),
            [one] if window_of(&one.algorithm).is_some() => Ok(one),
            [one] => Err(format!("limit `{}` is another one", one.name)),
            limits => Err(format!("this one has {} limits", limits.len())),
        }
    }
}

impl ApproximateRule {
    fn numbers(&self) -> ApproximateNumbers {
        let (max_over, nodes) = (self.bound.max_over(), self.bound.nodes());
        ApproximateNumbers { max_over, nodes, sync: self.sync }
    }
}

/// A window in which nodes hear of their places often enough.
fn long_enough(limit: &Limit) -> Result<Micros, NoApproximate> {
    let window = Micros(window_of(&limit.algorithm).unwrap_or_default());
    if window < MIN_APPROXIMATE_WINDOW {
        return Err(NoApproximate::Window { limit: limit.name.clone(), window });
    }
    Ok(window)
}

/// The length of an aligned window that is counted as it is admitted.
fn window_of(algorithm: &Algorithm) -> Option<u64> {
    match algorithm.engine() {
        Engine::Window(window)
            if window.grid == (Grid::Aligned { ahead: 0 }) && !algorithm.counts_denied() =>
        {
            Some(window.span)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Rate;
    use crate::strategy::{FailurePolicy, Field, OverrideError, Scope};

    const NUMBERS: ApproximateNumbers = ApproximateNumbers { max_over: 50, nodes: 11, sync: Micros(100_000) };

    fn window(limit: u64, window: Micros) -> Algorithm {
        Algorithm::fixed_window(limit, window, false, false).unwrap()
    }

    fn strategy(algorithms: &[Algorithm]) -> Strategy {
        let limit = |(place, algorithm): (usize, &Algorithm)| Limit {
            name: format!("limit-{place}").into(),
            scope: Scope::new(&[Field::Consumer]),
            algorithm: *algorithm,
        };
        let limits = algorithms.iter().enumerate().map(limit).collect();
        Strategy::new("s", limits, false, FailurePolicy::Error).unwrap()
    }

    #[test]
    fn one_aligned_window_can_be_counted_on_the_nodes() {
        let minute = Micros::from_secs(60);
        let counted = strategy(&[window(6, minute)]).with_approximate(NUMBERS).unwrap();
        assert_eq!(counted.approximate().unwrap().bound.share(), 5);
        assert_eq!(counted.approximate().unwrap().bound.window(), minute);
        let kind = |algorithms: &[Algorithm]| {
            let error = strategy(algorithms).with_approximate(NUMBERS).unwrap_err().to_string();
            assert!(error.starts_with("`approximate` is for a strategy of exactly one limit"), "{error}");
            error.rsplit("; ").next().unwrap().to_owned()
        };
        let rate = Rate { count: 9, period: minute };
        for other in
            [Algorithm::bucket(9, rate).unwrap(), Algorithm::fixed_window(9, minute, true, false).unwrap()]
        {
            assert_eq!(kind(&[other]), "limit `limit-0` is another one");
        }
        assert_eq!(kind(&[window(9, minute); 2]), "this one has 2 limits");
    }

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let minute = Micros::from_secs(60);
        let error = |limit, length, numbers| {
            let refused = strategy(&[window(limit, length)]).with_approximate(numbers);
            refused.unwrap_err().to_string()
        };
        assert!(error(5, minute, NUMBERS).contains("less than the limit of 5"));
        assert!(error(9, Micros(999_999), NUMBERS).contains("at least 1s"));
        let sync = |sync| ApproximateNumbers { sync: Micros(sync), ..NUMBERS };
        assert!(error(9, minute, sync(9_999)).contains("must be from 10ms to 10s"));
        assert!(error(9, minute, sync(10_000_001)).contains("must be from 10ms to 10s"));
        assert!(error(9, minute, ApproximateNumbers { max_over: 9, ..NUMBERS }).contains("`max_over` is 9"));
    }

    #[test]
    fn overrides_keep_to_the_bound() {
        let minute = Micros::from_secs(60);
        let base = strategy(&[window(6, minute)]).with_approximate(NUMBERS).unwrap();
        let mut longer = base.clone();
        longer.override_limit("limit-0", window(60, Micros::from_secs(600))).unwrap();
        assert_eq!(longer.approximate().unwrap().bound.window(), Micros::from_secs(600));
        let mut small = base.clone();
        let error = small.override_limit("limit-0", window(5, minute)).unwrap_err();
        assert!(matches!(error, OverrideError::Approximate(NoApproximate::Bound(_))), "{error}");
        let bucket = Algorithm::bucket(9, Rate { count: 9, period: minute }).unwrap();
        let error = base.clone().override_limit("limit-0", bucket).unwrap_err();
        assert!(matches!(error, OverrideError::Approximate(NoApproximate::Kind(_))), "{error}");
        let other = ApproximateNumbers { max_over: 40, ..NUMBERS };
        let changed = strategy(&[window(6, minute)]).with_approximate(other).unwrap();
        assert!(!changed.means_the_same(&base));
        let next = base.clone().with_generation(3);
        assert_eq!(next.approximate(), base.approximate());
    }
}
