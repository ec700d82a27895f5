//! The snapshot: what the workers read of the configuration, as one immutable whole.

use std::sync::Arc;

use weir_config::DenialMessages;
use weir_core::strategy::{Rules, Strategy};

use super::Templates;
use crate::access::SnapshotRights;
use crate::feature_parts::FeatureParts;
use crate::guard::Guard;
use crate::limiter::AnswerReserve;
use crate::telemetry::{CountedRows, Metrics};

/// The part of the configuration that workers read. A reload makes a new one.
#[derive(Clone)]
pub struct Snapshot {
    /// Strategies, resources, access lists and overrides.
    pub rules: Arc<Rules>,
    /// Removed concurrency strategies, whose leases may still be renewed and released.
    pub removed: Arc<Rules>,
    /// The rules of `authorize`.
    pub rights: SnapshotRights,
    /// The templates of denial messages.
    pub templates: Arc<Templates>,
    /// The parts of features.
    pub features: FeatureParts,
    /// The rows that count decisions.
    pub rows: CountedRows,
    /// The guard that refuses banned callers, which outlasts snapshots; `None` if nobody can be banned.
    pub guard: Option<Arc<dyn Guard>>,
    /// Part of callers' deadlines that is kept for answers without the store.
    pub reserve: AnswerReserve,
}

impl Snapshot {
    /// The snapshot of rules whose names `metrics` has, with nothing else.
    pub fn new(rules: Rules, metrics: &Metrics) -> Self {
        Self {
            rules: Arc::new(rules),
            removed: Arc::default(),
            rights: SnapshotRights::default(),
            templates: Arc::new(Templates::new(&DenialMessages::default())),
            features: FeatureParts::default(),
            rows: metrics.rows(),
            guard: None,
            reserve: AnswerReserve::default(),
        }
    }

    /// All strategies that nodes count on their own: those of the files, and those of features.
    pub fn approximate(&self) -> Vec<Arc<Strategy>> {
        let mut all = self.rules.approximate();
        all.extend(self.features.limits().flat_map(|limits| limits.approximate.iter().cloned()));
        all
    }
}
