//! Sample windows: average round trip, most permits in flight, and whether any work was dropped.
//!
//! Twin: lua/leases/sampling.lua.

use super::sample::Sample;
use weir_core::strategy::{SHORTEST_RTT, SamplingRule};
use weir_units::Micros;

/// The samples of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SampleWindow {
    /// Time of the first sample.
    began: Micros,
    samples: u64,
    rtt_sum: f64,
    max_in_flight: f64,
    dropped: bool,
}

impl SampleWindow {
    /// Adds a sample. Returns the summary of a complete window; the next sample begins another one.
    pub(super) fn add(&mut self, rule: SamplingRule, now: Micros, sample: Sample) -> Option<Sample> {
        if sample.rtt < SHORTEST_RTT.0 as f64 {
            return None;
        }
        // A clock that was set back must not keep the window open.
        if self.samples == 0 || now < self.began {
            self.began = now;
        }
        self.samples += 1;
        self.rtt_sum += sample.rtt;
        self.max_in_flight = self.max_in_flight.max(sample.in_flight);
        self.dropped |= sample.dropped;
        if now.0 - self.began.0 < rule.window.0 || self.samples < rule.samples {
            return None;
        }
        let Self { samples, rtt_sum, max_in_flight, dropped, .. } = std::mem::take(self);
        Some(Sample { rtt: rtt_sum / samples as f64, in_flight: max_in_flight, dropped, ..sample })
    }
}
