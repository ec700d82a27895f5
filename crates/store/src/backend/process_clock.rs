//! The clocks of states in this process.

use std::sync::Arc;

use weir_units::Micros;

/// The clocks of a backend whose states are in this process: features keep theirs beside them.
pub type ProcessClock = Arc<dyn ReadClocks>;

/// Reads the clocks of a backend in this process. A trait, because this module must not name the backend.
pub trait ReadClocks: Send + Sync {
    /// Returns the time of the monotonic clock.
    fn steady(&self) -> Micros;

    /// Returns the time of the wall clock.
    fn wall(&self) -> Micros;
}
