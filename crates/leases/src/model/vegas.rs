//! Vegas: compares each round trip with the shortest one that is known, and so estimates how many calls wait.
//!
//! Twin: lua/leases/vegas.lua.

use super::sample::{LimitRange, Sample};
use weir_core::strategy::{ProbeRule, VegasRule};

/// State between samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct VegasState {
    /// The shortest round trip; 0 before the first sample.
    no_load: f64,
    /// Samples since it was measured.
    samples: f64,
    /// The random part until the next probe, times the limit when it was measured; 0 before the first sample.
    permits: f64,
}

impl VegasState {
    /// The limit after a sample.
    pub(super) fn next(&mut self, rule: &VegasRule, limit: f64, range: LimitRange, sample: &Sample) -> f64 {
        if self.permits == 0.0 {
            self.permits = sample.jitter * limit;
        }
        self.samples += 1.0;
        if self.is_due(rule.probe) {
            *self = Self { no_load: sample.rtt, samples: 0.0, permits: sample.jitter * limit };
            return limit;
        }
        if self.no_load == 0.0 || sample.rtt < self.no_load {
            self.no_load = sample.rtt;
            return limit;
        }
        let next = range.clamp(match self.step(rule, limit, sample) {
            Some(next) => next,
            None => return limit,
        });
        (1.0 - rule.smoothing) * limit + rule.smoothing * next
    }

    fn is_due(&self, probe: ProbeRule) -> bool {
        match probe {
            ProbeRule::Never => false,
            ProbeRule::Every(samples) => self.samples >= samples,
            ProbeRule::PerPermit(samples) => self.samples >= self.permits * samples,
        }
    }

    /// The next limit, if it moves.
    fn step(&self, rule: &VegasRule, limit: f64, sample: &Sample) -> Option<f64> {
        let digits = digits_of(limit);
        if sample.dropped {
            return Some(limit - digits);
        }
        if sample.in_flight * 2.0 < limit {
            return None;
        }
        let queue = (limit * (1.0 - self.no_load / sample.rtt)).ceil();
        let (alpha, beta) = (rule.alpha.unwrap_or(3.0 * digits), rule.beta.unwrap_or(6.0 * digits));
        if queue <= digits {
            Some(limit + beta)
        } else if queue < alpha {
            Some(limit + digits)
        } else if queue > beta {
            Some(limit - digits)
        } else {
            None
        }
    }
}

/// max(1, ⌊log10 limit⌋), by comparison: a logarithm is not the same to the last bit in both languages.
fn digits_of(limit: f64) -> f64 {
    let (mut digits, mut next) = (1.0, 100.0);
    while limit >= next {
        digits += 1.0;
        next *= 10.0;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::digits_of;

    #[test]
    fn digits_are_the_whole_logarithm_and_at_least_one() {
        let pairs = [(1.0, 1.0), (9.9, 1.0), (99.9, 1.0), (100.0, 2.0), (999.0, 2.0), (1e3, 3.0), (1e9, 9.0)];
        for (limit, digits) in pairs {
            assert_eq!(digits_of(limit), digits, "{limit}");
        }
    }
}
