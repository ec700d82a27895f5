//! The numbers of adaptive limits, and of the controllers that adapt them.

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

/// The numbers of an AIMD limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AimdRule {
    /// Factor of the limit after work that was dropped or timed out.
    pub backoff: f64,
    /// Work that takes longer counts as dropped.
    pub timeout: Micros,
}

/// The numbers of a Vegas limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VegasRule {
    /// Part of a new limit that is adopted, from 0 to 1.
    pub smoothing: f64,
    /// Fewer calls that wait than this raise the limit. `None`: three times the digits of the limit.
    pub alpha: Option<f64>,
    /// More calls that wait than this lower the limit. `None`: six times the digits of the limit.
    pub beta: Option<f64>,
    /// Times at which the shortest round trip is measured again.
    pub probe: ProbeRule,
}

/// Times at which the shortest round trip is measured again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProbeRule {
    /// No further measurement.
    Never,
    /// At every sample of this number.
    Every(f64),
    /// After so many samples per permit of the limit at the last time, times a random part from a half to one. A limit
    /// that has fallen since does not bring it nearer: otherwise slow work would be taken for the shortest time while
    /// the limit still falls, and the limit would be back where it was.
    PerPermit(f64),
}

/// The numbers of a Gradient2 limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gradient2Rule {
    /// Part of a new limit that is adopted, from 0 to 1.
    pub smoothing: f64,
    /// Most calls that may wait.
    pub queue: f64,
    /// Number of samples in the long average.
    pub long_window: f64,
    /// Factor by which a round trip may exceed the long average.
    pub tolerance: f64,
}

/// Shorter round trips are no samples of a window: they say nothing of what is limited.
pub const SHORTEST_RTT: Micros = Micros(100);

/// Condition under which a window is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingRule {
    /// Least duration of a window.
    pub window: Micros,
    /// Least number of samples.
    pub samples: u64,
}
