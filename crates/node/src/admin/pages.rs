//! What the pages of the admin port are about.

use crate::feature_pages::FeaturePages;
use crate::readiness::Readiness;
use crate::telemetry::Metrics;

/// What the pages of the admin port show. Clones share it.
#[derive(Clone)]
pub struct AdminPages {
    /// The metrics.
    pub metrics: Metrics,
    /// The readiness.
    pub readiness: Readiness,
    /// What features show.
    pub features: FeaturePages,
}
