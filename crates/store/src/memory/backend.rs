//! The memory store as a backend: every access is the store itself.

use weir_core::strategy::Owner;
use weir_units::Micros;

use super::MemoryStore;
use crate::backend::{Backend, BackendStats, BackendWork, ProcessClock, ReadClocks, every_second};

impl Backend for MemoryStore {
    type Worker = Self;
    type LazyWorker = Self;
    type Decisions = Self;

    fn worker(&self) -> Self {
        self.clone()
    }

    fn lazy_worker(&self) -> Self {
        self.clone()
    }

    fn decisions(&self, worker: &Self) -> Self {
        worker.clone()
    }

    fn share_among<'o>(&self, owners: impl Iterator<Item = &'o Owner>) {
        Self::share_among(self, owners);
    }

    fn process(&self) -> Option<ProcessClock> {
        Some(self.clock())
    }

    fn stats(&self) -> BackendStats {
        BackendStats { memory: Some(Self::stats(self)), ..BackendStats::default() }
    }

    fn run(&self) -> BackendWork {
        let store = self.clone();
        Box::pin(every_second(move || store.sweep()))
    }
}

impl MemoryStore {
    /// Returns its clocks.
    #[must_use]
    pub fn clock(&self) -> ProcessClock {
        ProcessClock::new(self.clone())
    }
}

impl ReadClocks for MemoryStore {
    fn steady(&self) -> Micros {
        self.0.time.steady()
    }

    fn wall(&self) -> Micros {
        self.0.time.stamp().now
    }
}
