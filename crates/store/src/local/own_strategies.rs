//! Strategies that one worker has used, each under a reference count of its own.
//!
//! All workers share the count of an `Arc<Strategy>`. A decision that waits for the store holds its strategy, so it would take
//! that count's cache line from the other workers, twice. The node's states are beside it, under the same count.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_core::strategy::Strategy;

use super::LocalShared;

/// Strategies that are kept; each has one possible place.
const KEPT: usize = 8;

pub(super) struct OwnStrategies {
    node: LocalShared,
    kept: Mutex<[Option<Arc<OwnStrategy>>; KEPT]>,
}

/// A strategy, so that an `Arc` of it has a count of its own.
pub(super) struct OwnStrategy {
    strategy: Arc<Strategy>,
    pub(super) node: LocalShared,
}

impl Deref for OwnStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.strategy
    }
}

impl OwnStrategies {
    pub(super) fn new(node: LocalShared) -> Self {
        Self { node, kept: Mutex::default() }
    }

    /// The strategy, under a count of this worker.
    pub(super) fn of(&self, strategy: &Arc<Strategy>) -> Arc<OwnStrategy> {
        let place = (Arc::as_ptr(strategy) as usize / size_of::<Strategy>()) % KEPT;
        let mut kept = self.kept.lock();
        match &kept[place] {
            Some(own) if Arc::ptr_eq(&own.strategy, strategy) => Arc::clone(own),
            _ => {
                let own = OwnStrategy { strategy: Arc::clone(strategy), node: self.node.clone() };
                Arc::clone(kept[place].insert(Arc::new(own)))
            }
        }
    }
}
