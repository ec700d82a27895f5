//! The one place that reads a clock. Everything else gets the time as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_units::Micros;

/// Where a store's `now` comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's wall clock; on Redis, the server's own `TIME`, so that all nodes share one clock.
    #[default]
    System,
    /// A clock that tests and simulations move by hand.
    Manual(ManualClock),
}

impl Clock {
    /// Microseconds since the Unix epoch. A clock set before 1970 reads as 0.
    #[must_use]
    #[allow(clippy::disallowed_methods)] // the one reader
    #[inline]
    pub fn now(&self) -> Micros {
        match self {
            Self::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(Micros::ZERO, Micros::from),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// The time that a store with a clock of its own must use instead of it, if any.
    #[must_use]
    pub fn explicit(&self) -> Option<Micros> {
        match self {
            Self::System => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }
}

/// A clock that stands still until it is set. Clones share the same time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Micros) -> Self {
        Self(Arc::new(AtomicU64::new(now.0)))
    }

    /// Moves the clock, forwards or back.
    pub fn set(&self, now: Micros) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    /// The time it stands at.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed))
    }
}

/// A point on the monotonic clock, for latencies and deadlines; never part of a decision.
#[must_use]
#[allow(clippy::disallowed_methods)] // the one reader
#[inline]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Where a store's wrappers take monotonic time from.
#[derive(Debug, Clone)]
pub enum Monotonic {
    /// The machine's.
    System,
    /// As many microseconds after `origin` as the manual clock stands at.
    Manual {
        /// Any point in time.
        origin: Instant,
        /// What moves it.
        clock: ManualClock,
    },
}

impl Monotonic {
    /// The one that belongs to `clock`: both are moved by hand, or none is.
    #[must_use]
    pub fn of(clock: &Clock) -> Self {
        match clock {
            Clock::System => Self::System,
            Clock::Manual(clock) => Self::Manual { origin: monotonic(), clock: clock.clone() },
        }
    }

    /// A point in time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        match self {
            Self::System => monotonic(),
            Self::Manual { origin, clock } => *origin + Duration::from(clock.now()),
        }
    }
}
