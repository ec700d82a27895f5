//! Warm-up (Guava's SmoothWarmingUp): a limit that a service approaches over a while after it was idle.
//!
//! An idle limit stores permits, up to `most`. A stored permit costs more time than a fresh one, the more so the more
//! are stored: a cold service gets calls `cold_factor` times as far apart as a warm one. A call waits only for the
//! backlog of earlier calls, and the next call waits for its cost.
//!
//! ```text
//!   fresh = period / count      threshold = ½ · warm_up / fresh      most = threshold + 2 · warm_up / (fresh + cold)
//!   cold  = fresh · cold_factor        slope = (cold − fresh) / (most − threshold)
//!   a permit costs fresh + slope · (stored − threshold) µs, and fresh where no more than the threshold is stored
//!   one permit is stored again every warm_up / most µs without a backlog
//! ```
//!
//! The state is the backlog (whole µs), the stored permits, when both were true, and the most that could be stored
//! then: a changed limit keeps the share. An absent state is cold, as one is that was idle for long enough.
//!
//! Here alone a decision has floats. They are the doubles of IEEE 754 in the same order of operations as in
//! `lua/warm_up.lua`, without fused multiply-add, so that both agree to the last bit; every time is truncated to a whole
//! microsecond, as in Guava.

use super::Reading;
use weir_units::CEILING;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    /// Permits per period, once it is warm.
    pub count: u64,
    /// The period, in microseconds.
    pub period: u64,
    /// Time to become warm, and to become cold, in microseconds.
    pub warm_up: u64,
    /// Factor of a permit's time in a cold service.
    pub cold_factor: u64,
}

/// Stored state of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Time for which after `at` the next call may start, in microseconds.
    pub backlog: u64,
    /// Permits that were stored at `at`.
    pub stored: Permits,
    /// Time at which both were true.
    pub at: u64,
    /// The most permits that could be stored under the parameters then.
    pub most: Permits,
}

/// A number of permits: a double, by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permits(u64);

struct Curve {
    fresh: f64,
    threshold: f64,
    most: f64,
    slope: f64,
    /// Microseconds without a backlog per stored permit.
    each: f64,
}

impl WarmUp {
    /// Microseconds of a fresh permit.
    pub fn fresh(&self) -> f64 {
        self.period as f64 / self.count as f64
    }

    /// The most permits that can be stored, rounded up; `None` where they could not be counted.
    pub(super) fn whole_most(&self) -> Option<u64> {
        let most = self.curve().most.ceil();
        (most < CEILING as f64).then_some(most as u64)
    }

    /// True if the time of such a cost can be represented, even for a cold limit.
    pub(super) fn can_take(&self, cost: u64) -> bool {
        cost < CEILING && cost as f64 * self.fresh() * (self.cold_factor as f64) < CEILING as f64
    }

    fn curve(&self) -> Curve {
        let (fresh, warm_up) = (self.fresh(), self.warm_up as f64);
        let threshold = 0.5 * warm_up / fresh;
        let cold = fresh * self.cold_factor as f64;
        let most = threshold + 2.0 * warm_up / (fresh + cold);
        let slope = (cold - fresh) / (most - threshold);
        Curve { fresh, threshold, most, slope, each: warm_up / most }
    }

    /// The state as of now: `origin` is the backlog, `extra` has the stored permits, and the level is the time until
    /// the limit is cold.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let curve = self.curve();
        let cold = Reading { extra: curve.most.to_bits(), ..Reading::fresh(now, 0) };
        let Some(state) = state else { return cold };
        let mut stored = state.stored.get();
        if state.most.get() != curve.most {
            stored = stored * curve.most / state.most.get();
        }
        let backlog = state.backlog;
        let until_cold = backlog + curve.until_cold(stored);
        let reading = |level, at, backlog, stored: f64, shift| Reading {
            level,
            at,
            origin: backlog,
            extra: stored.to_bits(),
            shift,
            span: 0,
        };
        if state.at > now {
            let ahead = state.at - now;
            if ahead > until_cold {
                return reading(until_cold, now, backlog, stored, ahead);
            }
            return reading(until_cold, state.at, backlog, stored, 0);
        }
        let elapsed = now - state.at;
        if elapsed >= until_cold {
            return cold;
        }
        if elapsed > backlog {
            stored = curve.most.min(stored + (elapsed - backlog) as f64 / curve.each);
        }
        reading(until_cold - elapsed, now, backlog.saturating_sub(elapsed), stored, 0)
    }

    /// Stored permits, rounded down.
    pub(super) fn remaining(reading: &Reading) -> u64 {
        f64::from_bits(reading.extra).floor() as u64
    }

    /// Returns the time for which a call of `cost` delays the next one.
    pub(super) fn time_of(&self, reading: &Reading, cost: u64) -> u64 {
        self.curve().spend(f64::from_bits(reading.extra), cost).1
    }

    /// Takes `cost` permits, and returns the level then.
    pub(super) fn spend(&self, reading: &mut Reading, cost: u64) -> u64 {
        let curve = self.curve();
        let (stored, time) = curve.spend(f64::from_bits(reading.extra), cost);
        reading.origin += time;
        reading.extra = stored.to_bits();
        reading.origin + curve.until_cold(stored)
    }

    /// The state to store after reading and spending.
    pub(super) fn write(&self, reading: &Reading) -> State {
        let most = Permits(self.curve().most.to_bits());
        State { backlog: reading.origin, stored: Permits(reading.extra), at: reading.at, most }
    }
}

impl Curve {
    /// Microseconds without a backlog until no more permits can be stored.
    fn until_cold(&self, stored: f64) -> u64 {
        ((self.most - stored) * self.each).ceil().max(0.0) as u64
    }

    /// Takes `cost` permits: returns the stored permits left, and the time they take.
    fn spend(&self, stored: f64, cost: u64) -> (f64, u64) {
        let cost = cost as f64;
        let taken = stored.min(cost);
        let (mut time, mut rest) = (0.0, taken);
        let above = stored - self.threshold;
        if above > 0.0 {
            let costly = above.min(taken);
            let both = (self.fresh + above * self.slope) + (self.fresh + (above - costly) * self.slope);
            time = (costly * both / 2.0).floor();
            rest = taken - costly;
        }
        time = time + (self.fresh * rest).floor() + ((cost - taken) * self.fresh).floor();
        (stored - taken, time as u64)
    }
}

impl Permits {
    /// The permits that are stored, and the most that could be, by their bits; `None` if they are not.
    pub(super) fn pair(stored: u64, most: u64) -> Option<(Self, Self)> {
        let fine = most > 0 && (0.0..=CEILING as f64).contains(&f64::from_bits(most));
        let fine = fine && (0.0..=f64::from_bits(most)).contains(&f64::from_bits(stored));
        fine.then_some((Self(stored), Self(most)))
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}
