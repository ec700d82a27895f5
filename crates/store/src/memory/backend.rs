//! The memory store as a backend: every access is the store itself.

use std::sync::{Arc, Weak};

use weir_core::strategy::Owner;
use weir_units::Micros;

use super::MemoryStore;
use super::budget::NoRoom;
use crate::backend::{
    Backend, BackendStats, BackendWork, FeatureStates, KeepStates, ProcessClock, ProcessStates, ReadClocks,
    StateOwner, every_second,
};

impl Backend for MemoryStore {
    type Worker = Self;
    type Decisions = Self;

    fn worker(&self) -> Self {
        self.clone()
    }

    fn decisions(&self, worker: &Self) -> Self {
        worker.clone()
    }

    fn share_among<'o>(&self, owners: impl Iterator<Item = &'o Owner>) {
        Self::share_among(self, owners);
    }

    fn process(&self) -> Option<ProcessStates> {
        Some(self.states())
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
    /// Returns the clocks of the store.
    pub fn clock(&self) -> ProcessClock {
        Arc::new(self.clone())
    }

    /// Returns the storage of features beside the store's own states.
    pub fn states(&self) -> ProcessStates {
        Arc::new(self.clone())
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

impl KeepStates for MemoryStore {
    fn clock(&self) -> ProcessClock {
        Self::clock(self)
    }

    fn digest(&self, write: &dyn Fn(&mut Vec<u8>)) -> u128 {
        self.0.locate(|locator| locator.digest(write))
    }

    fn number_of(&self, owner: &Owner) -> StateOwner {
        StateOwner(self.0.budget.owners().number(owner))
    }

    fn take(&self, StateOwner(owner): StateOwner, bytes: usize) -> bool {
        let budget = &self.0.budget;
        let scarce = budget.owners().is_above_share(owner, bytes);
        let taken = if scarce { budget.take_unless_scarce(bytes) } else { budget.take(bytes) };
        if taken {
            budget.owners().took(owner, bytes);
        }
        taken
    }

    fn moved(&self, StateOwner(owner): StateOwner, before: usize, after: usize) {
        self.0.budget.moved(owner, before, after);
    }

    fn refuse(&self) {
        // It counts the refusal; the feature answers in its own words.
        let _ = self.0.budget.refuse(NoRoom::Budget);
    }

    fn join(&self, states: Weak<dyn FeatureStates>) {
        self.0.features.lock().push(states);
    }
}
