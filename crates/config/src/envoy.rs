//! Envoy's rate limit service: the `envoy` section, and the directory of files in the reference's format.
//!
//! ```text
//!   directory ── files ── keys        rejects unknown keys and keys in wrong places
//!   (names,      (a tree  descriptor  texts, numbers and matchers, in the reference's words
//!    sizes)       each)   rate_limit  └── weir_core::envoy::Descriptor ── compile ── Domains
//!        └── watch: reads again what has changed, and swaps all domains at once, or none; with isolate,
//!                   each domain that is good
//! ```

mod all_or_none;
mod descriptor;
mod directory;
mod errors;
mod files;
mod folder;
mod isolate;
mod keys;
mod metadata;
mod node;
mod overlay;
mod rate_limit;
mod rule_count;
mod scalar;
mod watch;

pub use directory::{MAX_ENVOY_FILE, MAX_ENVOY_FILES};
pub use errors::{EnvoyError, EnvoyErrors};
pub use files::EnvoyFiles;
pub use folder::EnvoyFolder;
pub use isolate::{DomainSet, GoodDomains, RefusedDomain};
pub use rule_count::RuleCount;
pub use watch::{CurrentDomains, EnvoySource, Look};

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::table::EnvoyConfig;

/// The most descriptors for each rule that there may be.
pub(super) const MAX_DESCRIPTORS_PER_RULE: usize = 10;

/// Maximum nesting depth of descriptors. A control plane makes a level of each condition of a route.
pub const MAX_ENVOY_LEVELS: usize = 32;

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
