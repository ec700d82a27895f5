//! Strategies that one worker has used, each under a reference count of its own.
//!
//! All workers share the count of an `Arc<Strategy>`. A decision that waits for the store holds its strategy, so it would take
//! that count's cache line from the other workers, twice.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_core::strategy::Strategy;

/// Strategies that are kept; each has one possible place.
const KEPT: usize = 8;

#[derive(Default)]
pub(super) struct OwnStrategies(Mutex<[Option<Arc<OwnStrategy>>; KEPT]>);

/// A strategy, so that an `Arc` of it has a count of its own.
pub(super) struct OwnStrategy(Arc<Strategy>);

impl Deref for OwnStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.0
    }
}

impl OwnStrategies {
    /// The strategy, under a count of this worker.
    pub(super) fn of(&self, strategy: &Arc<Strategy>) -> Arc<OwnStrategy> {
        let place = (Arc::as_ptr(strategy) as usize / size_of::<Strategy>()) % KEPT;
        let mut kept = self.0.lock();
        match &kept[place] {
            Some(own) if Arc::ptr_eq(&own.0, strategy) => Arc::clone(own),
            _ => Arc::clone(kept[place].insert(Arc::new(OwnStrategy(Arc::clone(strategy))))),
        }
    }
}
