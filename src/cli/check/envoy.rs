//! `weir check` of Envoy's files.

use std::path::Path;
use std::sync::Arc;

use weir_config::FeatureSection;
use weir_envoy::ENVOY;
use weir_envoy::files::{EnvoyErrors, EnvoyFiles, EnvoyFolder};
use weir_envoy::limiter::limits;
use weir_envoy::settings::EnvoyConfig;
use weir_node::feature_parts::FeaturePart;

use super::super::{envoy, explanation, say};
use super::{CheckedConfig, counted};

/// Rules of Envoy whose bounds are printed.
const NOTED_RULES: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct EnvoyArgs {
    /// Read the file in the format of envoyproxy/ratelimit
    #[arg(long, conflicts_with_all = ["config", "diff", "redis_acl"])]
    envoy: bool,
    /// Several of Envoy's files may have one domain in common
    #[arg(long)]
    merge_domains: bool,
}

impl EnvoyArgs {
    /// True if the arguments are Envoy's files.
    pub(super) fn is_on(&self) -> bool {
        self.envoy
    }
}

/// Checks a directory of Envoy's files.
pub(super) fn directory(folder: &Path, args: &EnvoyArgs) -> CheckedConfig {
    match EnvoyFiles::load(folder, args.merge_domains) {
        Ok(files) if files.count == 0 => {
            Err(vec![format!("{}: there is no configuration in this directory", folder.display())])
        }
        _ => files(folder, args),
    }
}

/// Checks one of Envoy's files, or a directory of them.
pub(super) fn files(path: &Path, args: &EnvoyArgs) -> CheckedConfig {
    envoys(path.into(), args.merge_domains).map_err(|errors| vec![errors.to_string()])
}

/// Checks the files that a configuration names. Returns their summary.
pub(super) fn named_by(sections: &[FeatureSection], args: &EnvoyArgs) -> Result<Option<String>, String> {
    let Some(envoy) = section(sections) else { return Ok(None) };
    let Some(folder) = envoy.config.clone() else { return Ok(None) };
    let folder = EnvoyFolder::from(folder).with_config(envoy);
    let summary = envoys(folder, args.merge_domains || envoy.merge_domains);
    summary.map(Some).map_err(|errors| errors.to_string())
}

/// Returns the rules of the files that a configuration names, as a part of the snapshot.
pub(super) fn part(
    sections: &[FeatureSection],
    args: &EnvoyArgs,
) -> Result<Option<(&'static str, FeaturePart)>, String> {
    let Some(envoy) = section(sections) else { return Ok(None) };
    let Some(folder) = &envoy.config else { return Ok(None) };
    let folder = EnvoyFolder::new(folder, envoy.layout.clone()).with_config(envoy);
    let files =
        EnvoyFiles::load(folder, args.merge_domains || envoy.merge_domains).map_err(|it| it.to_string())?;
    let limits = limits(&files.compile(), envoy.overrides_in_request);
    Ok(Some((ENVOY, FeaturePart::new(Arc::new(())).with_limits(limits))))
}

/// True if the rules come from a control plane, and may be any.
pub(super) fn is_open(sections: &[FeatureSection]) -> bool {
    section(sections).is_some_and(|envoy| envoy.xds.is_some())
}

fn section(sections: &[FeatureSection]) -> Option<&EnvoyConfig> {
    sections.iter().find(|section| section.name() == ENVOY)?.settings()
}

/// Checks Envoy's files, prints warnings about keys without effect, and returns a summary.
fn envoys(folder: EnvoyFolder, merge_domains: bool) -> Result<String, EnvoyErrors> {
    let files = EnvoyFiles::load(folder, merge_domains)?;
    envoy::warn(&files);
    let (count, domains) = (files.count, files.domains.len());
    let compiled = files.compile();
    let limits = compiled.rules().len();
    let counted_on_nodes = compiled.rules().iter().filter_map(|rule| {
        let bound = explanation::approximate::lines(rule.limit.as_ref()?.strategy()).into_iter().next();
        Some((rule.path(), bound?))
    });
    for (path, bound) in counted_on_nodes.take(NOTED_RULES) {
        say(&format!("note: rule `{path}`, approximate: {bound}"));
    }
    let (count, domains) = (counted(count, "file", "files"), counted(domains, "domain", "domains"));
    Ok(format!("{count}, {domains}, {}", counted(limits, "limit", "limits")))
}
