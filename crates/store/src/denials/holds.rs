//! Time for which a denial stays true, as far as the verdict shows it.
//!
//! A denial is cached until the first of these times:
//!
//! ```text
//!   the decision is admitted                          retry_after
//!   `remaining` of some limit may have grown          `unchanged_for`; if that is unknown, 10 ms at most
//!   a limit that denies would admit a cost of 1       `admits_one`: from then on another node may charge it
//! ```
//!
//! Where a limit that denies would admit a cost of 1 now, or where the verdict does not show when, the denial is
//! cached for 10 ms at most. What stays stale beyond that is in docs/configuration/redis.md.

use std::time::Duration;

use weir_core::algorithm::{Algorithm, Cause, Engine, LimitVerdict};
use weir_core::strategy::Strategy;
use weir_units::{Micros, Retry};

/// Staleness bound where `remaining` may rise at any time. An answer from a distant Redis is about as old.
pub(super) const MAX_STALENESS: Duration = Duration::from_millis(10);
/// Part of the shortest time until a limit is full again, for which a `remaining` that may rise is cached.
const STALENESS_PART: u32 = 16;

/// Lifetime of a denial, from when the store was asked.
pub(super) fn holds(strategy: &Strategy, says: &[LimitVerdict], cost: u64) -> Duration {
    holds_of_costs(strategy, says, |_| cost)
}

/// Returns the time for which a denial holds where each limit was asked for a cost of its own.
pub(super) fn holds_of_costs(
    strategy: &Strategy,
    says: &[LimitVerdict],
    cost: impl Fn(usize) -> u64,
) -> Duration {
    let wait = says.iter().fold(Retry::Now, |longest, one| longest.max(one.retry));
    let holds = match wait {
        // Another caller may end this denial at any time, so it is not cached.
        Retry::Now | Retry::Unknown => return Duration::ZERO,
        Retry::After(wait) => Duration::from(wait),
        Retry::Never => Duration::MAX,
    };
    let reset = says.iter().map(|one| one.reset_after).min().unwrap_or_default();
    let grows = MAX_STALENESS.min(Duration::from(reset) / STALENESS_PART);
    strategy.algorithms().iter().zip(says).enumerate().fold(holds, |holds, (index, (limit, says))| {
        let cost = cost(index);
        let holds = holds.min(unchanged_for(limit, says, cost).or(grows));
        if says.fits() { holds } else { holds.min(admits_one(limit, says, cost).or(MAX_STALENESS)) }
    })
}

/// Time of an event, relative to the verdict.
enum Until {
    Never,
    After(Micros),
    /// Possibly now: the verdict does not show it.
    Unknown,
}

impl Until {
    /// The time as a duration; `unknown` if it is unknown.
    fn or(self, unknown: Duration) -> Duration {
        match self {
            Self::Never => Duration::MAX,
            Self::After(time) => time.into(),
            Self::Unknown => unknown,
        }
    }
}

/// Earliest time `remaining` may rise, other than by `retry_after` passing. Other limits may deny for longer than
/// this one does.
fn unchanged_for(limit: &Algorithm, says: &LimitVerdict, cost: u64) -> Until {
    if says.remaining == limit.limit() {
        return Until::Never;
    }
    match (limit.engine(), says.retry) {
        (Engine::Window(_), _) => Until::After(says.reset_after),
        // `remaining` may rise long before the gap is over.
        (Engine::Log(log), _) if log.min_gap > 0 => Until::Unknown,
        (_, Retry::After(wait)) if says.remaining.checked_add(1) == Some(cost) => {
            // `remaining` never exceeds the limit.
            if cost == limit.limit() { Until::Never } else { Until::After(wait) }
        }
        _ => Until::Unknown,
    }
}

/// Returns the time at which a limit that denies `cost` would admit a cost of 1. Before then no node can charge this limit,
/// so that its numbers only age.
fn admits_one(limit: &Algorithm, says: &LimitVerdict, cost: u64) -> Until {
    let gap_alone = says.cause == Some(Cause::MinGap);
    match (says.retry, limit.engine()) {
        _ if limit.limit() == 0 => Until::Never,
        // Regardless of the cost, it waits for the gap only.
        (Retry::After(wait), _) if cost == 1 || gap_alone => Until::After(wait),
        // The whole limit is restored at the end of the window.
        (_, Engine::Window(_)) if says.remaining == 0 => Until::After(says.reset_after),
        // Either something remains, so it would admit 1 now; or a part is restored before the whole cost fits, at a
        // time that `unchanged_for` does not know either.
        _ => Until::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use weir_core::algorithm::Rate;
    use weir_core::strategy::{FailurePolicy, Field, Limit, Scope};

    use super::*;

    const MINUTE: Micros = Micros::from_secs(60);
    const STALE: Duration = MAX_STALENESS;

    fn strategy(algorithms: &[Algorithm]) -> Strategy {
        let scope = Scope::new(&[Field::Resource]);
        let limit = |(index, algorithm): (usize, &Algorithm)| Limit {
            name: format!("limit-{index}").into(),
            scope: scope.clone(),
            algorithm: *algorithm,
        };
        let limits = algorithms.iter().enumerate().map(limit).collect();
        Strategy::new("holds", limits, false, FailurePolicy::Error).unwrap()
    }

    /// Another caller's release may end it at any moment, and the cache does not see that.
    #[test]
    fn a_denial_whose_end_is_not_known_is_not_cached() {
        let strategy = strategy(&[Algorithm::fixed_window(5, MINUTE, false, false).unwrap(); 2]);
        for other in [Retry::Now, Retry::After(MINUTE), Retry::Unknown] {
            let says = [denies(Retry::Unknown, 0), denies(other, 0)];
            assert_eq!(holds(&strategy, &says, 1), Duration::ZERO, "beside {other:?}");
        }
    }

    /// Verdict of a limit that denies until `retry` is over, with so much remaining, and that is full after a minute.
    fn denies(retry: Retry, remaining: u64) -> LimitVerdict {
        let cause = if retry == Retry::Never { Cause::Never } else { Cause::Count };
        LimitVerdict { cause: Some(cause), remaining, retry, reset_after: MINUTE, level_before: 0 }
    }

    fn every_engine(limit: u64) -> [Algorithm; 6] {
        [
            Algorithm::bucket(limit, Rate { count: 1, period: MINUTE }),
            Algorithm::fixed_window(limit, MINUTE, false, false),
            Algorithm::interval_refill(limit, 1, MINUTE, false),
            Algorithm::sliding_log(limit, MINUTE),
            Algorithm::sliding_window(limit, MINUTE),
            Algorithm::bucketed_window(limit, MINUTE, 6, false),
        ]
        .map(Result::unwrap)
    }

    #[test]
    fn a_cost_of_one_is_known_until_it_passes() {
        for algorithm in every_engine(5) {
            let says = denies(Retry::After(MINUTE), 0);
            assert_eq!(holds(&strategy(&[algorithm]), &[says], 1), Duration::from(MINUTE), "{algorithm:?}");
        }
    }

    #[test]
    fn a_window_tells_when_it_admits_one_and_a_limit_of_nothing_never_does() {
        let says = |retry| denies(retry, 0);
        for algorithm in every_engine(5) {
            let knows = matches!(algorithm.engine(), Engine::Window(_));
            let expected = if knows { Duration::from(MINUTE) } else { STALE };
            for (retry, cost) in [(Retry::After(MINUTE), 3), (Retry::Never, 9)] {
                assert_eq!(holds(&strategy(&[algorithm]), &[says(retry)], cost), expected, "{algorithm:?}");
            }
        }
        let nothing = Algorithm::fixed_window(0, MINUTE, false, false).unwrap();
        assert_eq!(holds(&strategy(&[nothing]), &[says(Retry::Never)], 1), Duration::MAX);
    }

    #[test]
    fn a_gap_is_the_same_for_every_cost() {
        let log = Algorithm::strict_log(5, MINUTE, false, Micros::from_secs(5)).unwrap();
        let gap = LimitVerdict { cause: Some(Cause::MinGap), ..denies(Retry::After(Micros(3)), 4) };
        // `remaining` may rise before the gap is over, so the entry is kept briefly; the wait bounds it as well.
        assert_eq!(holds(&strategy(&[log]), &[gap], 2), Duration::from_micros(3));
    }
}
