//! The numbers of Vegas.

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
