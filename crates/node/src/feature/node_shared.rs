//! What features share with the node that starts.

use weir_time::clock::Clock;

use crate::readiness::Readiness;
use crate::telemetry::ConfigLoads;

/// What features share with the node that starts.
pub struct NodeShared {
    /// The clock of the decisions.
    pub clock: Clock,
    /// How the files were read.
    pub loads: ConfigLoads,
    /// The state of the node.
    pub readiness: Readiness,
    /// Its gRPC address.
    pub address: String,
}
