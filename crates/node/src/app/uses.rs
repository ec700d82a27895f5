//! Needs that a configuration has of its store.

use prometheus::Registry;
use weir_config::Config;
use weir_store::scripts::Uses;

use super::AppError;
use crate::feature::{self, FeatureList};
use crate::feature_parts::{FeaturePart, FeatureParts};
use crate::service::Snapshot;
use crate::telemetry::Metrics;

/// Returns what a configuration needs of its store, with these parts of features besides those that they prepare.
pub fn uses(
    config: &mut Config,
    parts: impl IntoIterator<Item = (&'static str, FeaturePart)>,
    features: FeatureList,
) -> Result<Uses, AppError> {
    let metrics = Metrics::register(&Registry::new(), &config.rules)?;
    let prepared = feature::prepare(features, config, &FeatureParts::default());
    let prepared = prepared.map_err(AppError::refused_by)?;
    let snapshot = Snapshot {
        features: parts.into_iter().fold(prepared, |all, (name, part)| all.with(name, part)),
        ..Snapshot::new(std::mem::take(&mut config.rules), &metrics)
    };
    Ok(feature::uses(features, &snapshot).or_window())
}
