//! Envoy's rate limit service: the `envoy` section, and the directory of files in the reference's format.
//!
//! ```text
//!   directory ── files ── keys        every key is known, and where it means something
//!   (names,      (a tree  descriptor  texts, numbers and matchers, in the reference's words
//!    sizes)       each)   rate_limit  └── weir_core::envoy::Descriptor ── compile ── Domains
//!        └── watch: reads again what has changed, and swaps all domains at once, or none
//! ```

mod descriptor;
mod directory;
mod errors;
mod files;
mod keys;
mod metadata;
mod node;
mod rate_limit;
mod scalar;
mod watch;

use std::path::PathBuf;

pub use directory::{MAX_ENVOY_FILE, MAX_ENVOY_FILES};
pub use errors::{EnvoyError, EnvoyErrors};
pub use files::EnvoyFiles;
pub use watch::{CurrentDomains, EnvoySource, Look};

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::values::{Digits, Scalar, boolean, digits, quote};

/// The most descriptors of one set of files.
pub const MAX_DESCRIPTORS: usize = 100_000;

/// Settings of Envoy's rate limit service. The defaults are the reference's.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvoyConfig {
    /// The directory of its files; without one, the service is not offered.
    pub config: Option<PathBuf>,
    /// Whether several files may have descriptors of one domain.
    pub merge_domains: bool,
    /// Whether a request may bring its own limit.
    pub overrides_in_request: bool,
    /// Whether answers have `RateLimit-Limit`, `-Remaining` and `-Reset` headers.
    pub headers: bool,
    /// Whether answers have dynamic metadata.
    pub dynamic_metadata: bool,
    /// From which part of a limit on it counts as near, for metrics only: from 0 to 1.
    pub near_limit_ratio: f32,
    /// Whether every answer is OK in the end, whatever its statuses say.
    pub shadow_mode: bool,
    /// Whether every descriptor is over only together with all others of its request.
    pub quota_mode: bool,
}

impl Default for EnvoyConfig {
    fn default() -> Self {
        Self {
            config: None,
            merge_domains: false,
            overrides_in_request: true,
            headers: false,
            dynamic_metadata: false,
            near_limit_ratio: 0.8,
            shadow_mode: false,
            quota_mode: false,
        }
    }
}

/// The `envoy` section with the settings that go before it.
pub(super) fn envoy(
    mut fields: Mapping<'_>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> EnvoyConfig {
    let default = EnvoyConfig::default();
    let mut flag = |name: &'static str, report: &mut MistakeReport| fields.read(name, report, boolean);
    let overrides_in_request = flag("overrides_in_request", report);
    let headers = flag("headers", report);
    let dynamic_metadata = flag("dynamic_metadata", report);
    let shadow_mode = flag("shadow_mode", report);
    let quota_mode = flag("quota_mode", report);
    let envoy = EnvoyConfig {
        config: fields.choose_path("config", settings.of("envoy_config"), report),
        merge_domains: fields
            .choose("merge_domains", settings.of("envoy_merge_domains"), report, boolean)
            .unwrap_or(default.merge_domains),
        overrides_in_request: overrides_in_request.unwrap_or(default.overrides_in_request),
        headers: headers.unwrap_or(default.headers),
        dynamic_metadata: dynamic_metadata.unwrap_or(default.dynamic_metadata),
        near_limit_ratio: fields.read("near_limit_ratio", report, ratio).unwrap_or(default.near_limit_ratio),
        shadow_mode: shadow_mode.unwrap_or(default.shadow_mode),
        quota_mode: quota_mode.unwrap_or(default.quota_mode),
    };
    fields.finish(report);
    envoy
}

/// A part of one, such as `0.8`.
fn ratio(scalar: Scalar<'_>) -> Result<f32, String> {
    let (whole, fraction) = scalar.text.split_once('.').unwrap_or((scalar.text, "0"));
    let plain = |text: &str| matches!(digits(text), Digits::Number(_));
    let ratio = scalar.text.parse::<f32>().ok().filter(|_| plain(whole) && plain(fraction));
    match ratio {
        Some(ratio) if ratio <= 1.0 => Ok(ratio),
        _ => Err(format!("{} is not a part of one, from 0 to 1, such as 0.8", quote(scalar.text))),
    }
}
