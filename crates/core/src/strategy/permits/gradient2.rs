//! The numbers of Gradient2.

/// The numbers of a Gradient2 limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gradient2Rule {
    /// How much of a new limit is adopted, from 0 to 1.
    pub smoothing: f64,
    /// How many calls may wait.
    pub queue: f64,
    /// How many samples the long average is over.
    pub long_window: f64,
    /// How many times longer than the long average a round trip may be.
    pub tolerance: f64,
}
