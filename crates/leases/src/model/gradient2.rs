//! Gradient2: compares each round trip with the average of many, and lowers the limit while it is longer.
//!
//! It ignores drops. Twin: lua/leases/gradient2.lua.

use super::sample::{LimitRange, Sample};
use weir_core::strategy::Gradient2Rule;

/// The samples whose plain mean the long average starts from.
const WARM_UP: f64 = 10.0;

/// State between samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Gradient2State {
    samples: f64,
    /// Sum of the round trips of the first samples.
    sum: f64,
    /// The long average.
    long: f64,
}

impl Gradient2State {
    /// The limit after a sample.
    pub(super) fn next(
        &mut self,
        rule: &Gradient2Rule,
        limit: f64,
        range: LimitRange,
        sample: &Sample,
    ) -> f64 {
        let (short, long) = (sample.rtt, self.add(sample.rtt, rule.long_window));
        if long / short > 2.0 {
            self.long = long * 0.95;
        }
        if sample.in_flight < limit / 2.0 {
            return limit;
        }
        let gradient = (rule.tolerance * long / short).clamp(0.5, 1.0);
        let next = limit * gradient + rule.queue;
        range.clamp(limit * (1.0 - rule.smoothing) + next * rule.smoothing)
    }

    /// The long average with one more round trip.
    fn add(&mut self, rtt: f64, window: f64) -> f64 {
        if self.samples < WARM_UP {
            self.samples += 1.0;
            self.sum += rtt;
            self.long = self.sum / self.samples;
        } else {
            let factor = 2.0 / (window + 1.0);
            self.long = self.long * (1.0 - factor) + rtt * factor;
        }
        self.long
    }
}
