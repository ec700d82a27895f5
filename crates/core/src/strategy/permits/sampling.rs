//! The numbers of sample windows.

use weir_units::Micros;

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
