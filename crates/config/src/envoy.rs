//! The `envoy` section: Envoy's rate limit service.

mod all_or_none;
mod overlay;

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::table::EnvoyConfig;

/// Reads the `envoy` section, with the settings that override it.
pub(super) fn envoy(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    in_memory: bool,
    report: &mut MistakeReport,
) -> EnvoyConfig {
    let envoy = EnvoyConfig::read(&mut fields, &overrides.given, report);
    let xds = super::xds::xds(&mut fields, overrides, report);
    if xds.is_some() && envoy.config.is_some() {
        fields.report("xds", report, "domains come from `config` or from `xds`, not from both");
    }
    let rules = overlay::overlay(&mut fields, in_memory, report);
    let beside = [
        ("count_rejected", envoy.count_rejected),
        ("stop_when_over", envoy.stop_when_over),
        ("quota_mode", envoy.quota_mode),
    ];
    let all_or_none = all_or_none::all_or_none(&mut fields, beside, report);
    fields.finish(report);
    let rules = rules.counting_rejected(envoy.count_rejected).all_or_none(all_or_none.clone());
    EnvoyConfig { xds, rules, all_or_none, layout: overrides.envoy_layout().clone(), ..envoy }
}

/// Returns the name of the counters of the files, with the reason that no strategy may have it.
pub(super) fn reserved(envoy: &EnvoyConfig) -> Option<(&'static str, &'static str)> {
    let reason = "the counters of Envoy's files have this name; call the strategy something else";
    (envoy.config.is_some() || envoy.xds.is_some()).then_some((weir_core::envoy::STRATEGY, reason))
}
