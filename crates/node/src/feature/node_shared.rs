//! Parts of a starting node that features share.

use std::sync::Arc;

use weir_time::clock::Clock;

use crate::audit::AuditLog;
use crate::overlay_target::OverlayTarget;
use crate::readiness::{Readiness, RefusedFiles};
use crate::telemetry::ConfigLoads;
use crate::watch::ReloadRequests;

/// Parts that features share with the node that starts.
pub struct NodeShared {
    /// The clock of the decisions.
    pub clock: Clock,
    /// Log of operators' calls.
    pub audit: AuditLog,
    /// The rules in force, on which one feature may lay changes.
    pub target: Arc<dyn OverlayTarget>,
    /// Requests to read all files at once.
    pub reloads: ReloadRequests,
    /// Readings of the files.
    pub loads: ConfigLoads,
    /// Files that are refused.
    pub refused: RefusedFiles,
    /// The state of the node.
    pub readiness: Readiness,
    /// The gRPC address.
    pub address: String,
}
