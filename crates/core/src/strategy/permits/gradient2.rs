//! The numbers of Gradient2.

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
