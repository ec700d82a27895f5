//! States of features in this process, beside those of the backend: within its budget, by its clocks, and swept with its own.

use std::fmt;
use std::sync::{Arc, Weak};

use weir_core::strategy::Owner;

use super::ProcessClock;

/// Storage in this process for states of features, beside the backend's own. Clones share it.
#[derive(Clone)]
pub struct ProcessStates(Arc<dyn KeepStates>);

/// The number under which the bytes of an owner count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateOwner(pub(crate) u16);

/// States of a feature.
pub trait FeatureStates: Send + Sync {
    /// Returns the number of keys, for the metrics page.
    fn keys(&self) -> usize;

    /// Drops what has expired, a bounded part of it. It is called every second.
    fn sweep(&self);
}

/// The backend's part of it.
pub(crate) trait KeepStates: Send + Sync {
    fn clock(&self) -> ProcessClock;

    fn digest(&self, write: &dyn Fn(&mut Vec<u8>)) -> u128;

    fn number_of(&self, owner: &Owner) -> StateOwner;

    fn take(&self, owner: StateOwner, bytes: usize) -> bool;

    fn moved(&self, owner: StateOwner, before: usize, after: usize);

    fn refuse(&self);

    fn join(&self, states: Weak<dyn FeatureStates>);
}

impl ProcessStates {
    pub(crate) fn new(backend: impl KeepStates + 'static) -> Self {
        Self(Arc::new(backend))
    }

    /// Returns the clocks of the backend.
    pub fn clock(&self) -> ProcessClock {
        self.0.clock()
    }

    /// Returns the digest of a key, whose name `write` appends. It differs from process to process.
    pub fn digest(&self, write: impl Fn(&mut Vec<u8>)) -> u128 {
        self.0.digest(&write)
    }

    /// Returns the number of an owner of states.
    pub fn number_of(&self, owner: &Owner) -> StateOwner {
        self.0.number_of(owner)
    }

    /// Takes more bytes of the budget for states of `owner`. False if there are none for it.
    #[must_use]
    pub fn take(&self, owner: StateOwner, bytes: usize) -> bool {
        self.0.take(owner, bytes)
    }

    /// Records that a state of `before` bytes now has `after`.
    pub fn moved(&self, owner: StateOwner, before: usize, after: usize) {
        self.0.moved(owner, before, after);
    }

    /// Counts a state that was refused for lack of room.
    pub fn refuse(&self) {
        self.0.refuse();
    }

    /// Sweeps these states from now on, and counts their keys, while somebody else holds them.
    pub fn join(&self, states: &Arc<impl FeatureStates + 'static>) {
        let states: Weak<dyn FeatureStates> = Arc::downgrade(states) as Weak<dyn FeatureStates>;
        self.0.join(states);
    }
}

impl fmt::Debug for ProcessStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("states in this process")
    }
}
