//! The checks that are served now, on all workers.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use weir_node::feature_parts::FeatureParts;

use super::{CheckSettings, ProxyCheck};
use crate::metrics::HttpMetrics;

/// The checks of one configuration: the feature's part of a snapshot.
#[derive(Debug)]
pub(crate) struct ConfiguredChecks(pub(crate) Vec<Arc<CheckSettings>>);

/// The checks that are served now, by name. Workers share them.
pub(crate) struct CurrentChecks {
    by_name: ArcSwap<HashMap<String, Arc<ProxyCheck>>>,
    metrics: HttpMetrics,
}

impl CurrentChecks {
    /// Creates it without checks.
    pub(crate) fn new(metrics: HttpMetrics) -> Self {
        Self { by_name: ArcSwap::default(), metrics }
    }

    /// Serves the checks of a snapshot from now on.
    pub(crate) fn follow(&self, parts: &FeatureParts) {
        let Some(configured) = parts.get::<ConfiguredChecks>(crate::NAME) else { return };
        let before = self.by_name.load();
        // A check that has not changed remembers when its mistake was last logged.
        let unchanged = |settings: &CheckSettings| {
            before.get(&settings.name).filter(|check| *check.settings == *settings).map(Arc::clone)
        };
        let check = |settings: &Arc<CheckSettings>| {
            let new = || Arc::new(ProxyCheck::new(Arc::clone(settings), self.metrics.check(&settings.name)));
            (settings.name.clone(), unchanged(settings).unwrap_or_else(new))
        };
        self.by_name.store(Arc::new(configured.0.iter().map(check).collect()));
    }

    /// Returns the check of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<ProxyCheck>> {
        self.by_name.load().get(name).map(Arc::clone)
    }
}
