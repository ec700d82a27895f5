//! `weir check` of a program without the feature of Envoy's files.

use std::path::Path;

use weir_config::FeatureSection;
use weir_node::feature_parts::FeaturePart;

pub(super) use self::NoEnvoyArgs as EnvoyArgs;
use super::CheckedConfig;

#[derive(Debug, clap::Args)]
pub(super) struct NoEnvoyArgs {}

impl NoEnvoyArgs {
    /// False: no argument says that the files are Envoy's.
    #[expect(clippy::unused_self)]
    pub(super) fn is_on(&self) -> bool {
        false
    }
}

/// Refuses a directory of Envoy's files.
pub(super) fn directory(folder: &Path, args: &NoEnvoyArgs) -> CheckedConfig {
    files(folder, args)
}

/// Refuses Envoy's files.
pub(super) fn files(path: &Path, _: &NoEnvoyArgs) -> CheckedConfig {
    Err(vec![format!("{}: this program does not read the format of envoyproxy/ratelimit", path.display())])
}

/// Returns no summary.
#[expect(clippy::unnecessary_wraps)]
pub(super) fn named_by(_: &[FeatureSection], _: &NoEnvoyArgs) -> Result<Option<String>, String> {
    Ok(None)
}

/// Returns no part of the snapshot.
#[expect(clippy::unnecessary_wraps)]
pub(super) fn part(
    _: &[FeatureSection],
    _: &NoEnvoyArgs,
) -> Result<Option<(&'static str, FeaturePart)>, String> {
    Ok(None)
}

/// False: no rules come from a control plane.
pub(super) fn is_open(_: &[FeatureSection]) -> bool {
    false
}
