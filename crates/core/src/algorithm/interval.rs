//! Interval refill: a bucket that gets `refill` units back all at once, every `period`.
//!
//! Aligned, the refills fall on multiples of the period since the epoch; otherwise they are counted
//! from the first charge. What is stored is what is *spent*, so that a capacity that changed reads
//! old state right. Twin: `lua/interval.lua`.
//!
//! ```text
//!   k = ⌊(now − last) / period⌋      spent = max(0, spent − k · refill)      last += k · period
//!   admitted ⇔ spent + cost ≤ capacity
//! ```
//!
//! Once nothing is spent the state is the absent one: the next charge starts new periods.
//! Sources: bucket4j's "intervally" refill; the token bucket of upstash, without its negative balance.

use super::Reading;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Units restored at each refill.
    pub refill: u64,
    /// Microseconds between refills.
    pub period: u64,
    /// True if refills fall on multiples of the period since the epoch.
    pub aligned: bool,
}

/// Stored state of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The last refill that is accounted for.
    pub last: u64,
    /// Units that were spent and not refilled yet.
    pub spent: u64,
}

impl Interval {
    /// Units spent as of now. `origin` is the last refill; `ceiling` bounds a debt so that its end is still an exact
    /// time, also if it was written under a shorter period.
    pub(super) fn read(&self, state: Option<&State>, now: u64, ceiling: u64) -> Reading {
        let Some(state) = state else { return Reading::fresh(now, self.grid(now)) };
        let spent = state.spent.min(ceiling);
        if state.last > now {
            let ahead = state.last - now;
            if ahead > self.refills(spent) * self.period {
                let origin = self.grid(now);
                return Reading {
                    level: spent,
                    at: now,
                    origin,
                    extra: 0,
                    shift: state.last - origin,
                    span: 0,
                };
            }
            return Reading { level: spent, at: state.last, origin: state.last, extra: 0, shift: 0, span: 0 };
        }
        let refills = (now - state.last) / self.period;
        let back = refills.saturating_mul(self.refill);
        if back >= spent {
            return Reading::fresh(now, self.grid(now));
        }
        let origin = state.last + refills * self.period;
        Reading { level: spent - back, at: now, origin, extra: 0, shift: 0, span: 0 }
    }

    /// Microseconds until `excess` units are restored.
    pub(super) fn wait(&self, reading: &Reading, excess: u64) -> u64 {
        reading.origin + self.refills(excess) * self.period - reading.at
    }

    /// The state to store at the new `level` of spent units.
    pub(super) fn write(reading: &Reading, level: u64) -> State {
        State { last: reading.origin, spent: level }
    }

    fn refills(&self, units: u64) -> u64 {
        units.div_ceil(self.refill)
    }

    /// Start of a fresh state's periods.
    fn grid(&self, now: u64) -> u64 {
        if self.aligned { now - now % self.period } else { now }
    }
}
