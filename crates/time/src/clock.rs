//! The one place that reads a clock. Everything else gets the time as an argument.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_units::Micros;

/// The source of a store's `now`.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's wall clock; on Redis, the server's own `TIME`, so that all nodes share one clock.
    #[default]
    System,
    /// A clock that tests and simulations move by hand.
    Manual(ManualClock),
    /// The clock of a machine in a simulation of several. Timers and [`monotonic`] are those of the simulation's runtime.
    Simulated(SimulatedClock),
}

impl Clock {
    /// Returns microseconds since the Unix epoch. A clock set before 1970 reads as 0.
    #[must_use]
    #[allow(clippy::disallowed_methods)] // the one reader
    #[inline]
    pub fn now(&self) -> Micros {
        match self {
            Self::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(Micros::ZERO, Micros::from),
            Self::Manual(clock) => clock.now(),
            Self::Simulated(clock) => clock.now(),
        }
    }

    /// Returns the time that a store must use instead of its own clock, if any.
    #[must_use]
    pub fn explicit(&self) -> Option<Micros> {
        match self {
            Self::System | Self::Simulated(_) => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }

    /// True if timers may be those of the operating system.
    pub(crate) fn is_of_machine(&self) -> bool {
        !matches!(self, Self::Simulated(_))
    }
}

/// A clock whose time a simulation computes. Clones share it.
#[derive(Clone)]
pub struct SimulatedClock(Arc<dyn Fn() -> Micros + Send + Sync>);

impl SimulatedClock {
    /// A clock that stands at what `now` returns.
    pub fn new(now: impl Fn() -> Micros + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Time of the clock.
    #[must_use]
    pub fn now(&self) -> Micros {
        (self.0)()
    }
}

impl fmt::Debug for SimulatedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimulatedClock").field(&self.now()).finish()
    }
}

/// A clock that stands still until it is set. Clones share the same time.
///
/// It is a wall clock and a monotonic one: [`ManualClock::set`] moves both, [`ManualClock::step`] the wall clock alone.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    wall: AtomicU64,
    /// The sum of all steps of the wall clock, in microseconds.
    stepped: AtomicI64,
}

impl ManualClock {
    /// Creates a clock that stands at `now`.
    #[must_use]
    pub fn at(now: Micros) -> Self {
        Self(Arc::new(ManualTime { wall: AtomicU64::new(now.0), stepped: AtomicI64::new(0) }))
    }

    /// Advances both clocks until the wall clock stands at `now`. An earlier `now` moves both back, unlike on a real
    /// machine.
    pub fn set(&self, now: Micros) {
        self.0.wall.store(now.0, Ordering::Relaxed);
    }

    /// Sets the wall clock to `now`, without moving the monotonic clock.
    pub fn step(&self, now: Micros) {
        let before = self.0.wall.swap(now.0, Ordering::Relaxed);
        self.0.stepped.fetch_add(now.0.wrapping_sub(before).cast_signed(), Ordering::Relaxed);
    }

    /// Returns the wall clock's time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Micros {
        Micros(self.0.wall.load(Ordering::Relaxed))
    }

    /// Returns the wall clock's time without its steps.
    fn monotonic(&self) -> Micros {
        Micros(self.now().0.saturating_add_signed(self.0.stepped.load(Ordering::Relaxed).saturating_neg()))
    }
}

/// A point on the monotonic clock, for latencies and deadlines; never part of a decision.
///
/// It is the clock of tokio's timers: the machine's, or the virtual one of a runtime whose clock a test has paused.
#[must_use]
#[allow(clippy::disallowed_methods)] // the one reader
#[inline]
pub fn monotonic() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// CPU time that this thread has used so far.
#[must_use]
pub fn thread_cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// The source of monotonic time for a store's wrappers.
#[derive(Debug, Clone)]
pub enum Monotonic {
    /// The machine's.
    System,
    /// `origin`, advanced by the time that the manual clock would show without steps of its wall clock.
    Manual {
        /// Time point of the clock's zero.
        origin: Instant,
        /// The clock that moves it.
        clock: ManualClock,
    },
}

impl Monotonic {
    /// Returns the one that belongs to `clock`: both are manual, or neither is.
    #[must_use]
    pub fn from_clock(clock: &Clock) -> Self {
        match clock {
            Clock::System | Clock::Simulated(_) => Self::System,
            Clock::Manual(clock) => Self::Manual { origin: monotonic(), clock: clock.clone() },
        }
    }

    /// A point in time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        match self {
            Self::System => monotonic(),
            Self::Manual { origin, clock } => *origin + Duration::from(clock.monotonic()),
        }
    }
}

/// The time since the machine booted. It also runs while the machine is suspended, where [`Monotonic`] stands still.
#[derive(Debug, Clone)]
pub enum BootClock {
    /// The machine's.
    System,
    /// The manual clock, without steps of its wall clock.
    Manual(ManualClock),
    /// The clock of a machine in a simulation.
    Simulated(SimulatedClock),
}

impl BootClock {
    /// Returns the one that belongs to `clock`: both are manual, or neither is.
    #[must_use]
    pub fn from_clock(clock: &Clock) -> Self {
        match clock {
            Clock::System => Self::System,
            Clock::Manual(clock) => Self::Manual(clock.clone()),
            Clock::Simulated(clock) => Self::Simulated(clock.clone()),
        }
    }

    /// A time, in microseconds since the machine booted, or of the manual clock.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Micros {
        match self {
            Self::System => {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                Micros(seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000)
            }
            Self::Manual(clock) => clock.monotonic(),
            Self::Simulated(clock) => clock.now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_a_manual_clock_moves_the_wall_clock_alone() {
        let hour = Micros::from_secs(3600);
        let manual = ManualClock::at(hour);
        let (wall, steady) =
            (Clock::Manual(manual.clone()), Monotonic::from_clock(&Clock::Manual(manual.clone())));
        let begin = steady.now();
        manual.set(Micros(2 * hour.0));
        assert_eq!((wall.now(), steady.now() - begin), (Micros(2 * hour.0), hour.into()));
        for to in [0, 5, 1] {
            manual.step(Micros(to * hour.0));
            assert_eq!((wall.now(), steady.now() - begin), (Micros(to * hour.0), hour.into()), "at {to}");
        }
        manual.set(Micros(2 * hour.0));
        assert_eq!(steady.now() - begin, Micros(2 * hour.0).into());
    }
}
