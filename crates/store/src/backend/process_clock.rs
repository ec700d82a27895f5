//! The clocks of states in this process.

use std::sync::Arc;

use weir_units::Micros;

/// The clocks of a backend whose states are in this process: features keep theirs beside them. Clones share it.
#[derive(Clone)]
pub struct ProcessClock(Arc<dyn ReadClocks>);

/// The backend's part of it.
pub(crate) trait ReadClocks: Send + Sync {
    /// Returns the time of the monotonic clock.
    fn steady(&self) -> Micros;

    /// Returns the time of the wall clock.
    fn wall(&self) -> Micros;
}

impl ProcessClock {
    pub(crate) fn new(clocks: impl ReadClocks + 'static) -> Self {
        Self(Arc::new(clocks))
    }

    /// Returns the time of the monotonic clock.
    pub fn steady(&self) -> Micros {
        self.0.steady()
    }

    /// Returns the time of the wall clock.
    pub fn wall(&self) -> Micros {
        self.0.wall()
    }
}
