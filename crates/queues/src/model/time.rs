//! The time of a call.

use weir_units::Micros;

/// Time of a call, by two clocks. Expiry and due times follow only the steady one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueTime {
    /// A clock that never steps.
    pub steady: Micros,
    /// The time of day, for the ids of items and outcomes.
    pub wall: Micros,
}

impl From<Micros> for QueueTime {
    /// The two types name one clock.
    fn from(now: Micros) -> Self {
        Self { steady: now, wall: now }
    }
}
