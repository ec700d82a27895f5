//! The sample of consumers, as it is by default.

use weir_node::telemetry::Metrics;
use weir_usage::{ConsumerSamplers, UsageConfig};

/// Samples decisions from now on.
pub(crate) fn sample(metrics: &Metrics) {
    let _samplers = ConsumerSamplers::start(metrics, UsageConfig::default().sample);
}
