//! The rules that the pages show.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use weir_node::service::Snapshot;

use crate::limiter::Loaded;
use crate::settings::ENVOY;

/// The rules of the current snapshot. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ShownRules(Arc<ArcSwapOption<Loaded>>);

impl ShownRules {
    /// Shows those of another snapshot.
    pub(crate) fn follow(&self, snapshot: &Snapshot) {
        self.0.store(snapshot.features.get(ENVOY));
    }

    /// Returns the rules; `None` if no files were read.
    pub(super) fn current(&self) -> Option<Arc<Loaded>> {
        self.0.load_full()
    }
}
