//! What the pages of the admin port are about.

use crate::card::CardSpec;
use crate::control::ControlHandle;
use crate::readiness::Readiness;
use crate::telemetry::Metrics;

/// What the pages of the admin port show. Clones share it.
#[derive(Clone)]
pub struct AdminPages {
    /// The metrics.
    pub metrics: Metrics,
    /// The readiness.
    pub readiness: Readiness,
    /// Live control, if it is on.
    pub control: Option<ControlHandle>,
    /// The cards of features.
    pub cards: Vec<&'static CardSpec>,
}
