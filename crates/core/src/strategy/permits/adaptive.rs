//! The numbers of adaptive limits.

use super::aimd::AimdRule;
use super::gradient2::Gradient2Rule;
use super::sampling::SamplingRule;
use super::vegas::VegasRule;
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
    /// Time for which after its last lease a key remembers its limit.
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

impl ControllerRule {
    /// Returns the name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Aimd(_) => "aimd",
            Self::Vegas(_) => "vegas",
            Self::Gradient2(_) => "gradient2",
        }
    }
}
