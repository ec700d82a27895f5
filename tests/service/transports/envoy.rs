//! Envoy's service under the rules of its own tests.

use std::path::PathBuf;
use std::sync::Arc;

use weir_envoy::files::EnvoyFiles;
use weir_envoy::limiter::Loaded;
use weir_envoy::metrics::EnvoyMetrics;
use weir_envoy::service::EnvoyParts;
use weir_envoy::settings::EnvoyConfig;
use weir_envoy::{ENVOY, RunningEnvoy};
use weir_node::feature_parts::FeatureParts;

use super::ServedFeatures;

/// The service, and its part of the snapshot.
pub(super) fn served() -> (ServedFeatures, FeatureParts) {
    let files = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crates/envoy/tests/rls/files");
    let metrics = EnvoyMetrics::new(1);
    let loaded = Loaded::new(Arc::new(EnvoyFiles::load(files.as_path(), false).unwrap().compile()), &metrics);
    let config = EnvoyConfig { dynamic_metadata: true, ..EnvoyConfig::default() };
    let parts = EnvoyParts { config, metrics };
    let parts_of_snapshot = FeatureParts::default().with(ENVOY, loaded.part(true));
    (vec![(ENVOY, Arc::new(RunningEnvoy::new(parts)))], parts_of_snapshot)
}
