//! Adaptive limits. One of the two places of weir-core with floats in a decision.
//!
//! The arithmetic is in f64, in the same order in both languages, without fused operations; so both have the same
//! limits to the last bit.

use super::aimd::AimdRule;
use super::gradient2::{Gradient2Rule, Gradient2State};
use super::sample::{LimitRange, Sample};
use super::sampling::{SampleWindow, SamplingRule};
use super::vegas::{VegasRule, VegasState};
use weir_units::Micros;

/// A limit that adapts to the reports of its holders.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveRule {
    /// The limit before the first sample, and after the controller was idle.
    pub initial: u64,
    /// The lowest limit.
    pub min: u64,
    /// The highest limit.
    pub max: u64,
    /// The algorithm that adapts it.
    pub controller: ControllerRule,
    /// Settings of the sample window. `None`: each release is a sample.
    pub sampling: Option<SamplingRule>,
    /// How long after its last lease a key remembers its limit.
    pub idle: Micros,
}

/// Algorithms of adaptive limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ControllerRule {
    /// Additive increase, multiplicative decrease.
    Aimd(AimdRule),
    /// By the shortest round trip.
    Vegas(VegasRule),
    /// By the average round trip.
    Gradient2(Gradient2Rule),
}

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

impl AdaptiveRule {
    /// The bounds of the limit.
    #[must_use]
    pub fn range(&self) -> LimitRange {
        LimitRange::new(self.min, self.max)
    }
}

impl ControllerRule {
    /// Its name in the configuration.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Aimd(_) => "aimd",
            Self::Vegas(_) => "vegas",
            Self::Gradient2(_) => "gradient2",
        }
    }
}

impl AdaptiveState {
    /// The estimate, within what the rule allows today. The state is of the rule's kind.
    pub(super) fn estimate(state: Option<&Self>, rule: &AdaptiveRule) -> f64 {
        state.map_or(rule.initial as f64, |state| rule.range().clamp(state.limit))
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
        let range = rule.range();
        let limit = range.clamp(self.limit);
        self.limit = match (&rule.controller, &mut self.memory) {
            (ControllerRule::Aimd(rule), _) => rule.next(limit, range, sample),
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
