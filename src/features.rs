//! The features of the program: what a node does beyond decisions. Only this file and its folder name them.

mod within_trunk;

use serde_json::Value;
use weir_config::{AccessRight, ConfigOverrides, SectionSpec, Setting, schema_with};
use weir_node::feature::FeatureList;

/// All features.
pub const FEATURES: FeatureList = &[
    #[cfg(feature = "control")]
    &weir_control::ControlFeature,
    #[cfg(feature = "envoy")]
    &weir_envoy::EnvoyFeature,
    #[cfg(feature = "http")]
    &weir_http::HttpFeature,
    #[cfg(feature = "leases")]
    &weir_leases::LeasesFeature,
    #[cfg(feature = "queues")]
    &weir_queues::QueuesFeature,
    #[cfg(feature = "usage")]
    &weir_usage::UsageFeature,
    &within_trunk::COUNTED,
];

/// Returns the sections of the file that features read.
#[must_use]
pub fn sections() -> Vec<&'static SectionSpec> {
    FEATURES.iter().flat_map(|feature| feature.settings().sections).collect()
}

/// Sections whose settings stand before those of another section, and not at the end.
const BEFORE: [(&str, &str); 4] =
    [("control", "store."), ("envoy", "log."), ("envoy.xds", "log."), ("envoy.xds.tls", "log.")];

/// Returns all settings with their paths: those of the configuration, and those of features, most of them at the end.
#[must_use]
pub fn settings() -> Vec<(String, Setting)> {
    let mut all = weir_config::settings();
    for (group, rows) in sections().into_iter().flat_map(SectionSpec::rows) {
        let place = BEFORE.iter().find(|(section, _)| *section == group);
        let place = place.and_then(|(_, next)| all.iter().position(|(path, _)| path.starts_with(next)));
        let rows = rows.into_iter().map(|row| (format!("{group}.{}", row.key), row));
        let place = place.unwrap_or(all.len());
        all.splice(place..place, rows);
    }
    all
}

/// Returns the paths of the gRPC methods that need a right, those of features last.
#[must_use]
pub fn methods(right: AccessRight) -> Vec<&'static str> {
    let services = FEATURES.iter().flat_map(|feature| feature.services());
    let of_features = services.flat_map(|service| service.methods);
    let of_features = of_features.filter(|method| method.rights.contains(&right)).map(|method| method.path);
    right.row().methods.iter().copied().chain(of_features).collect()
}

/// Returns the schema of a configuration file.
#[must_use]
pub fn schema() -> Value {
    schema_with(&sections())
}

/// Returns overrides without values, with which files may have the sections of features.
#[must_use]
pub fn overrides() -> ConfigOverrides {
    ConfigOverrides::default().with_sections(sections())
}
