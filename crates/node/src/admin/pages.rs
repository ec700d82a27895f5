//! What the pages of the admin port are about.

use crate::feature_pages::FeaturePages;
use crate::readiness::Readiness;
use crate::telemetry::Metrics;

/// Sources of the pages of the admin port. Clones share them.
#[derive(Clone)]
pub struct AdminPages {
    /// The metrics.
    pub metrics: Metrics,
    /// The readiness.
    pub readiness: Readiness,
    /// Pages of features.
    pub features: FeaturePages,
}
