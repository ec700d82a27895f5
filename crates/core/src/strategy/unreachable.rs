//! Limits that never deny, because another limit of the same strategy denies first.

use super::{Limit, Strategy};
use crate::algorithm::{Algorithm, Engine, Grid};
use weir_units::Micros;

impl Strategy {
    /// Pairs of a limit that no call can reach, and the limit in front of it.
    ///
    /// Both count by the same fields. What the limit in front admits is bounded from above, so a pair that is missing
    /// here may be unreachable, too; a pair that is here is.
    pub fn unreachable_limits(&self) -> Vec<(&Limit, &Limit)> {
        let limits = || self.limits().iter().enumerate();
        let in_front_of = |(place, behind): (usize, &Limit)| {
            limits().find(|(other, front)| self.takes_the_same(*other, place) && hides(front, behind))
        };
        limits().filter_map(|behind| Some((behind.1, in_front_of(behind)?.1))).collect()
    }

    /// True if both limits take the same of each call, and at the same time.
    fn takes_the_same(&self, first: usize, second: usize) -> bool {
        let Some(costed) = self.costed() else { return true };
        let at = |place: usize| costed.limits.get(place);
        at(first).zip(at(second)).is_some_and(|(first, second)| {
            first.cost == second.cost && (costed.hold.is_none() || first.is_fixed())
        })
    }
}

/// True if what passes `front` never reaches `behind`.
fn hides(front: &Limit, behind: &Limit) -> bool {
    let (first, second) = (&front.algorithm, &behind.algorithm);
    front.name != behind.name
        && front.scope == behind.scope
        && !first.is_shadow()
        && !second.is_shadow()
        && bounds_what_passes(first)
        && never_denies(second, rate(first))
}

/// A number of units, and the time within which at most twice as many pass.
fn rate(algorithm: &Algorithm) -> (u128, u128) {
    (u128::from(algorithm.limit()), u128::from(algorithm.window(Micros::ZERO).0))
}

/// True for limits which in any time t admit at most limit · (⌈t / window⌉ + 1).
fn bounds_what_passes(algorithm: &Algorithm) -> bool {
    let is_bounded = match algorithm.engine() {
        Engine::Bucket(_) | Engine::Log(_) | Engine::Slots(_) => true,
        // Some months are shorter than the first one, by which the pace is measured.
        Engine::Window(window) => !matches!(window.grid, Grid::Month { .. }),
        Engine::Interval(_) | Engine::Sliding(_) | Engine::WarmUp(_) => false,
    };
    is_bounded && !algorithm.charges_after() && algorithm.undelayed().is_none()
}

/// True if an algorithm admits everything that passes at this pace.
fn never_denies(algorithm: &Algorithm, (units, within): (u128, u128)) -> bool {
    let (limit, window) = rate(algorithm);
    if algorithm.counts_denied() || algorithm.charges_after() || within == 0 || window == 0 {
        return false;
    }
    match algorithm.engine() {
        Engine::Bucket(_) => {
            algorithm.undelayed().is_none() && 2 * units <= limit && units * window <= limit * within
        }
        Engine::Log(log) => {
            !log.holds() && log.min_gap == 0 && units * (window.div_ceil(within) + 1) <= limit
        }
        Engine::Slots(_) => units * (window.div_ceil(within) + 1) <= limit,
        Engine::Window(_) => units * (window.div_ceil(within) + 1) <= limit,
        Engine::Interval(_) | Engine::Sliding(_) | Engine::WarmUp(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Rate;
    use crate::algorithm::budget::{BudgetLimit, CostedLimits, HoldBounds, LimitCost};
    use crate::strategy::{FailurePolicy, Field, Scope};

    fn strategy(algorithms: [Algorithm; 2]) -> Strategy {
        let limit = |(name, algorithm): (&str, Algorithm)| Limit {
            name: name.into(),
            scope: Scope::new(&[Field::Consumer]),
            algorithm,
        };
        let limits = ["first", "second"].into_iter().zip(algorithms).map(limit).collect();
        Strategy::new("api", limits, false, FailurePolicy::Error).unwrap()
    }

    fn found(algorithms: [Algorithm; 2]) -> Vec<(String, String)> {
        let strategy = strategy(algorithms);
        let names = |(behind, front): (&Limit, &Limit)| (behind.name.to_string(), front.name.to_string());
        strategy.unreachable_limits().into_iter().map(names).collect()
    }

    fn log(limit: u64, seconds: u64) -> Algorithm {
        Algorithm::strict_log(limit, Micros::from_secs(seconds), false, Micros::ZERO).unwrap()
    }

    fn bucket(burst: u64, seconds: u64) -> Algorithm {
        Algorithm::bucket(burst, Rate { count: burst, period: Micros::from_secs(seconds) }).unwrap()
    }

    #[test]
    fn a_limit_behind_a_tighter_one_is_found() {
        let pair = |behind: &str, front: &str| vec![(behind.to_owned(), front.to_owned())];
        assert_eq!(found([log(10, 1), log(1_000, 60)]), pair("second", "first"));
        assert_eq!(found([log(1_000, 60), log(10, 1)]), pair("first", "second"));
        assert_eq!(found([bucket(10, 1), bucket(100, 5)]), pair("second", "first"));
    }

    #[test]
    fn limits_with_other_costs_are_not_compared() {
        let found = |costs: [LimitCost; 2], hold| {
            let algorithms = [log(10, 1), log(1_000, 60)];
            let of = |(cost, algorithm)| BudgetLimit { algorithm, cost, at_once: false, near_percent: None };
            let limits = costs.into_iter().zip(algorithms).map(of).collect();
            let costed = CostedLimits { limits, names: vec!["input".into()], hold };
            strategy(algorithms).with_costs(costed).unreachable_limits().len()
        };
        let hold = HoldBounds { max: Micros::from_secs(1), known_for: Micros::from_secs(60) };
        assert_eq!(found([LimitCost::Fixed(1), LimitCost::Named(0)], None), 0);
        assert_eq!(found([LimitCost::Named(0), LimitCost::Named(0)], None), 1);
        assert_eq!(found([LimitCost::Named(0), LimitCost::Named(0)], Some(hold)), 0);
        assert_eq!(found([LimitCost::Fixed(1), LimitCost::Fixed(1)], Some(hold)), 1);
    }

    /// Each denies something that the other one admits.
    #[test]
    fn limits_that_both_deny_are_not_found() {
        assert!(found([log(10, 1), log(500, 60)]).is_empty());
        assert!(found([bucket(10, 1), bucket(19, 1)]).is_empty());
        assert!(found([bucket(10, 1), bucket(100, 20)]).is_empty());
        assert!(found([log(10, 1), log(609, 60)]).is_empty());
    }
}
