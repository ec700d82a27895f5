//! Advice to clients on a limit beside its answer: length of its window, and time until the next unit.

use super::{Algorithm, Cause, Engine, Grid, LimitVerdict, Op, Verdict, Window};
use weir_units::{Micros, Retry};

/// The time until one more unit than now remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextUnit {
    /// The limit is full: there is no further unit.
    Full,
    /// The limit has no such time.
    None,
    /// After this time, if nobody else calls.
    After(Micros),
    /// The answer does not tell. A peek of one unit more than remains does.
    Unknown,
}

impl Algorithm {
    /// The length of the window as it is configured, as of `now`; for limits without one the time in which an empty limit fills
    /// up. A unit of a strict bucketed window counts up to one part longer.
    pub fn window(&self, now: Micros) -> Micros {
        Micros(match &self.engine {
            // Where calls pay afterwards, the limit is the largest single cost, not the burst.
            Engine::Bucket(bucket) => bucket.wait(self.limit.saturating_mul(self.weight)),
            Engine::Interval(interval) => {
                self.limit.div_ceil(interval.refill).saturating_mul(interval.period)
            }
            Engine::Window(window) => match window.grid {
                Grid::Month { ahead } => Window::month(now.0, ahead),
                Grid::Aligned { .. } | Grid::Spread | Grid::Anchored => window.span,
            },
            Engine::Log(log) => log.span,
            // Until the largest cost is paid and the limit is cold again.
            Engine::WarmUp(warm_up) => warm_up.spend(&mut warm_up.read(None, now.0), self.limit),
            Engine::Sliding(sliding) => sliding.span,
            Engine::Slots(slots) => slots.window(),
        })
    }

    /// Returns when a limit with the verdict `said` on `cost`, within `verdict`, gets its next unit.
    pub fn next_unit(&self, op: Op, cost: u64, verdict: &Verdict, said: &LimitVerdict) -> NextUnit {
        if said.remaining >= self.limit || said.reset_after == Micros::ZERO {
            return NextUnit::Full;
        }
        if let Retry::After(wait) = said.retry
            && (cost == said.remaining + 1 || said.cause == Some(Cause::MinGap))
        {
            return NextUnit::After(wait);
        }
        let charged = if verdict.allowed && op != Op::Peek { verdict.granted } else { 0 };
        let level = said.level_before.saturating_add(charged.saturating_mul(self.weight)).min(self.ceiling);
        // The highest level at which one more unit remains.
        let room = self.capacity().saturating_sub((said.remaining + 1).saturating_mul(self.weight));
        match &self.engine {
            Engine::Window(_) => NextUnit::After(said.reset_after),
            Engine::Bucket(bucket) => {
                // The level of a cached answer is older than its time until full.
                let age = bucket.wait(level).saturating_sub(said.reset_after.0);
                let level = level.saturating_sub(age.saturating_mul(bucket.drain));
                NextUnit::After(Micros(bucket.wait(level.saturating_sub(room))))
            }
            Engine::Interval(interval) => {
                let refills = |level: u64| level.div_ceil(interval.refill);
                let later = refills(level).saturating_sub(refills(level.saturating_sub(room)));
                let later = later.saturating_mul(interval.period);
                NextUnit::After(Micros(said.reset_after.0.saturating_sub(later)))
            }
            Engine::Log(_) | Engine::Sliding(_) | Engine::Slots(_) => NextUnit::Unknown,
            // Its stored permits do not return in even steps.
            Engine::WarmUp(_) => NextUnit::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Calendar, Rate, State, VerdictSink, decide};

    #[derive(Default)]
    struct Said(Option<LimitVerdict>, Option<Verdict>);

    impl VerdictSink for Said {
        fn limit(&mut self, verdict: LimitVerdict) {
            self.0 = Some(verdict);
        }

        fn all(&mut self, verdict: Verdict) {
            self.1 = Some(verdict);
        }
    }

    fn ask(
        limit: &Algorithm,
        state: &mut Option<State>,
        op: Op,
        cost: u64,
        now: u64,
    ) -> (Verdict, LimitVerdict) {
        let mut said = Said::default();
        let Ok(()) = decide(std::slice::from_ref(limit), state, op, cost, Micros(now), &mut said);
        (said.1.unwrap(), said.0.unwrap())
    }

    fn limits() -> Vec<Algorithm> {
        let period = Micros(7_000);
        vec![
            Algorithm::bucket(5, Rate { count: 3, period }).unwrap(),
            Algorithm::bucket(1, Rate { count: 2, period }).unwrap(),
            Algorithm::uniform(period).unwrap(),
            Algorithm::fixed_window(5, period, false, false).unwrap(),
            Algorithm::fixed_window(5, period, true, false).unwrap(),
            Algorithm::interval_refill(5, 2, period, true).unwrap(),
            Algorithm::interval_refill(5, 1, period, false).unwrap(),
            Algorithm::sliding_window(5, period).unwrap(),
            Algorithm::sliding_log(5, period).unwrap(),
            Algorithm::bucketed_window(5, period, 7, true).unwrap(),
        ]
    }

    /// The next unit comes when a peek of one more than remains says that it would pass.
    #[test]
    fn the_next_unit_is_when_one_more_would_pass() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let (mut known, mut full) = (0, 0);
        for limit in limits() {
            let (mut state, mut now) = (None, 1_000_000);
            for _ in 0..2_000 {
                now += next(4_000);
                let (op, cost) = ([Op::Charge, Op::Charge, Op::Peek, Op::Force][next(4) as usize], next(7));
                let (verdict, said) = ask(&limit, &mut state, op, cost, now);
                let (_, peeked) = ask(&limit, &mut state.clone(), Op::Peek, said.remaining + 1, now);
                match limit.next_unit(op, cost, &verdict, &said) {
                    NextUnit::Full => {
                        full += 1;
                        assert_eq!(peeked.retry, Retry::Never, "{limit:?}");
                    }
                    NextUnit::After(wait) => {
                        known += 1;
                        assert_eq!(peeked.retry, Retry::After(wait), "{limit:?} {op:?} {cost} {said:?}");
                    }
                    NextUnit::None => panic!("{limit:?}"),
                    NextUnit::Unknown => {
                        assert!(matches!(
                            limit.engine,
                            Engine::Log(_) | Engine::Sliding(_) | Engine::Slots(_)
                        ));
                    }
                }
            }
        }
        assert!(known > 10_000 && full > 100, "{known} {full}");
    }

    #[test]
    fn windows_last_as_configured_or_as_an_empty_limit_takes_to_fill() {
        let (period, day) = (Micros(7_000), 86_400_000_000);
        for (limit, window) in [
            (Algorithm::bucket(5, Rate { count: 3, period }).unwrap(), 11_667),
            (Algorithm::uniform(period).unwrap(), 7_000),
            (Algorithm::charge_after(2, Rate { count: 3, period }, 9).unwrap(), 21_000),
            // Ten permits of a cold limit, and then until it is cold again.
            (Algorithm::warm_up(Rate { count: 1, period }, Micros(28_000), 3, Some(10)).unwrap(), 112_000),
            (Algorithm::bucket(0, Rate { count: 3, period }).unwrap(), 0),
            (Algorithm::interval_refill(5, 2, period, true).unwrap(), 21_000),
            (Algorithm::fixed_window(5, period, false, false).unwrap(), 7_000),
            (Algorithm::calendar_window(5, Calendar::Day, 0, false).unwrap(), day),
            (Algorithm::calendar_window(5, Calendar::Month, 0, false).unwrap(), 29 * day),
            (Algorithm::sliding_window(5, period).unwrap(), 7_000),
            (Algorithm::sliding_log(5, period).unwrap(), 7_000),
            (Algorithm::bucketed_window(5, period, 7, false).unwrap(), 7_000),
            (Algorithm::bucketed_window(5, period, 7, true).unwrap(), 7_000),
        ] {
            // In February 2024.
            assert_eq!(limit.window(Micros(1_707_000_000_000_000)), Micros(window), "{limit:?}");
        }
    }
}
