//! The true time of a simulation, and the clocks of its machines, which differ from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir_time::clock::{SimulatedClock, monotonic};
use weir_units::Micros;

/// 2024-01-01T00:00:00Z: the true time at the start.
pub(crate) const START: u64 = 1_704_067_200_000_000;

/// The virtual time of the runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    origin: Instant,
}

impl Timeline {
    /// Begins now, on the current runtime.
    pub(crate) fn begin() -> Self {
        Self { origin: monotonic() }
    }

    /// Microseconds since the start.
    pub(crate) fn now(self) -> u64 {
        monotonic().saturating_duration_since(self.origin).as_micros() as u64
    }

    /// Waits until this time, to the tick of the runtime.
    pub(crate) async fn until(self, at: u64) {
        tokio::time::sleep_until((self.origin + Duration::from_micros(at)).into()).await;
    }
}

/// The clock of a machine. It may drift and step. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct MachineClock {
    timeline: Timeline,
    /// Millionths by which the clock runs faster.
    ppm: i64,
    /// Time by which the clock is ahead, besides its drift.
    ahead: Arc<AtomicI64>,
}

impl MachineClock {
    pub(crate) fn new(timeline: Timeline, ppm: i64, ahead: i64) -> Self {
        Self { timeline, ppm, ahead: Arc::new(AtomicI64::new(ahead)) }
    }

    pub(crate) fn now(&self) -> Micros {
        let passed = self.timeline.now() as i64;
        let drifted = passed + passed * self.ppm / 1_000_000;
        Micros(START.saturating_add_signed(drifted + self.ahead.load(Relaxed)))
    }

    /// Moves it.
    pub(crate) fn step(&self, by: i64) {
        self.ahead.fetch_add(by, Relaxed);
    }

    /// The clock of a node of Weir.
    pub(crate) fn of_node(&self) -> SimulatedClock {
        let clock = self.clone();
        SimulatedClock::new(move || clock.now())
    }
}
