//! Adaptive limits. One of the two places with floats in a decision.
//!
//! The arithmetic is in f64, in the same order in both languages, without fused operations; so both have the same
//! limits to the last bit.

use super::aimd;
use super::gradient2::Gradient2State;
use super::sample::{LimitRange, Sample};
use super::sampling::SampleWindow;
use super::vegas::VegasState;
use weir_core::strategy::{AdaptiveRule, ControllerRule};
use weir_units::Micros;

/// State of a key's adaptive limit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AdaptiveState {
    limit: f64,
    memory: ControllerMemory,
    window: SampleWindow,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ControllerMemory {
    Aimd,
    Vegas(VegasState),
    Gradient2(Gradient2State),
}

impl AdaptiveState {
    /// The estimate, within what the rule allows today. The state is of the rule's kind.
    pub(super) fn estimate(state: Option<&Self>, rule: &AdaptiveRule) -> f64 {
        state.map_or(rule.initial as f64, |state| LimitRange::new(rule).clamp(state.limit))
    }

    /// Takes a sample, which may complete a window.
    pub(super) fn sample(state: &mut Option<Self>, rule: &AdaptiveRule, now: Micros, sample: Sample) {
        let state = state.get_or_insert_with(|| Self::new(rule));
        let complete = match rule.sampling {
            Some(sampling) => state.window.add(sampling, now, sample),
            None => Some(sample),
        };
        if let Some(sample) = complete {
            state.take_sample(rule, &sample);
        }
    }

    fn new(rule: &AdaptiveRule) -> Self {
        let memory = match rule.controller {
            ControllerRule::Aimd(_) => ControllerMemory::Aimd,
            ControllerRule::Vegas(_) => ControllerMemory::Vegas(VegasState::default()),
            ControllerRule::Gradient2(_) => ControllerMemory::Gradient2(Gradient2State::default()),
        };
        Self { limit: rule.initial as f64, memory, window: SampleWindow::default() }
    }

    fn take_sample(&mut self, rule: &AdaptiveRule, sample: &Sample) {
        let range = LimitRange::new(rule);
        let limit = range.clamp(self.limit);
        self.limit = match (&rule.controller, &mut self.memory) {
            (ControllerRule::Aimd(rule), _) => aimd::next(rule, limit, range, sample),
            (ControllerRule::Vegas(rule), ControllerMemory::Vegas(state)) => {
                state.next(rule, limit, range, sample)
            }
            (ControllerRule::Gradient2(rule), ControllerMemory::Gradient2(state)) => {
                state.next(rule, limit, range, sample)
            }
            // Another controller's memory was dropped before.
            (ControllerRule::Vegas(_) | ControllerRule::Gradient2(_), _) => limit,
        };
    }

    /// True if this kind of controller wrote it.
    pub(super) fn is_of(&self, rule: &AdaptiveRule) -> bool {
        matches!(
            (&rule.controller, &self.memory),
            (ControllerRule::Aimd(_), ControllerMemory::Aimd)
                | (ControllerRule::Vegas(_), ControllerMemory::Vegas(_))
                | (ControllerRule::Gradient2(_), ControllerMemory::Gradient2(_))
        )
    }
}
