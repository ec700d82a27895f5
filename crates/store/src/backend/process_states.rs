//! States of features in this process, beside those of the backend: within its budget, by its clocks, and swept with its own.

use std::sync::{Arc, Weak};

use weir_core::strategy::Owner;

use super::ProcessClock;

/// Storage in this process for states of features, beside the backend's own.
pub type ProcessStates = Arc<dyn KeepStates>;

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

/// Keeps states beside those of a backend in this process. A trait, because this module must not name the backend.
pub trait KeepStates: Send + Sync {
    /// Returns the clocks of the backend.
    fn clock(&self) -> ProcessClock;

    /// Returns the digest of a key, whose name `write` appends. It differs from process to process.
    fn digest(&self, write: &dyn Fn(&mut Vec<u8>)) -> u128;

    /// Returns the number of an owner of states.
    fn number_of(&self, owner: &Owner) -> StateOwner;

    /// Takes more bytes of the budget for states of `owner`. False if there are none for it.
    #[must_use]
    fn take(&self, owner: StateOwner, bytes: usize) -> bool;

    /// Records that a state of `before` bytes now has `after`.
    fn moved(&self, owner: StateOwner, before: usize, after: usize);

    /// Counts a state that was refused for lack of room.
    fn refuse(&self);

    /// Sweeps these states from now on, and counts their keys, while somebody else holds them.
    fn join(&self, states: Weak<dyn FeatureStates>);
}
