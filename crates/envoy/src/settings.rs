//! The section `envoy`: Envoy's rate limit service. One table, for the reader, the schema, the flags and the reference.

mod all_or_none;
mod layout;
mod rules;
mod schemas;
mod table;
mod xds;
mod xds_address;
mod xds_tls_names;

use std::path::PathBuf;
use std::sync::Arc;

use crate::rules::STRATEGY;
use weir_config::{
    Config, FeatureSection, GivenKeys, SectionReader, SectionSettings, SectionSpec, SettingGroup, Suffices,
};

pub use self::layout::EnvoyLayout;
use self::table::{
    ALL_OR_NONE, CONFIG, COUNT_REJECTED, DYNAMIC_METADATA, HEADERS, ISOLATE_DOMAINS, LIMIT_HEADER, MAX_RULES,
    MERGE_DOMAINS, NEAR_LIMIT_RATIO, OVERRIDES_IN_REQUEST, QUOTA_MODE, REFERENCE_METRICS, REMAINING_HEADER,
    RESET_HEADER, RULES, SHADOW_MODE, STANDARD_HEADERS, STOP_WHEN_OVER, XDS,
};
pub use self::xds::{XdsConfig, XdsTlsConfig};
pub use self::xds_address::{XdsAddress, pairs};
pub use self::xds_tls_names::XdsTlsNames;
use crate::overlay::{AllOrNone, EnvoyOverlay};

/// The name of the feature, and the key of its section.
pub const ENVOY: &str = "envoy";

/// The default of `max_rules`.
pub const MAX_ENVOY_RULES: usize = 100_000;

/// Settings of Envoy's rate limit service. The defaults are the reference's.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvoyConfig {
    /// The directory of Envoy's rate limit files, in the format of envoyproxy/ratelimit.
    pub config: Option<PathBuf>,
    /// True if several of Envoy's files may define the same domain.
    pub merge_domains: bool,
    /// True if a mistake in the files concerns only its own domain, which keeps its last good version.
    pub isolate_domains: bool,
    /// The most rules of all files, or of all sets of a control plane.
    pub max_rules: usize,
    /// True if a request may contain its own limit.
    pub overrides_in_request: bool,
    /// True if answers have headers with the limit of the descriptor that limits most, for the client.
    pub headers: bool,
    /// The name of the header with the requests per unit.
    pub limit_header: String,
    /// The name of the header with the requests that still pass.
    pub remaining_header: String,
    /// The name of the header with the seconds until the limit is full again.
    pub reset_header: String,
    /// True if answers have the fields `RateLimit` and `RateLimit-Policy` of [http.md](http.md) for the client.
    pub standard_headers: bool,
    /// True if answers have dynamic metadata for Envoy's other filters: the request and its limits.
    pub dynamic_metadata: bool,
    /// The part of a limit above which hits count as near it in the metrics.
    pub near_limit_ratio: f32,
    /// True if the metrics include those of envoyproxy/ratelimit, with its names and labels.
    pub reference_metrics: bool,
    /// True if denied hits are charged too by all rules that can, as envoyproxy/ratelimit does.
    pub count_rejected: bool,
    /// True if one descriptor that is over its limit keeps the others of its request from being charged.
    pub stop_when_over: bool,
    /// True if nothing is denied; the statuses in the answer still show the limits.
    pub shadow_mode: bool,
    /// True if a request is over its limit only if all its descriptors are.
    pub quota_mode: bool,
    /// A control plane that sends the domains, in place of files.
    pub xds: Option<XdsConfig>,
    /// Changes of the counting of rules, for what the files or the control plane cannot say.
    pub rules: EnvoyOverlay,
    /// Domains whose descriptors are charged together, all of them or none.
    pub all_or_none: AllOrNone,
    /// Selection of the directory's files.
    pub layout: EnvoyLayout,
}

impl Default for EnvoyConfig {
    fn default() -> Self {
        Self {
            config: None,
            merge_domains: false,
            isolate_domains: false,
            max_rules: MAX_ENVOY_RULES,
            overrides_in_request: true,
            headers: false,
            limit_header: "RateLimit-Limit".to_owned(),
            remaining_header: "RateLimit-Remaining".to_owned(),
            reset_header: "RateLimit-Reset".to_owned(),
            standard_headers: false,
            dynamic_metadata: false,
            near_limit_ratio: 0.8,
            reference_metrics: false,
            count_rejected: false,
            stop_when_over: false,
            shadow_mode: false,
            quota_mode: false,
            xds: None,
            rules: EnvoyOverlay::default(),
            all_or_none: AllOrNone::default(),
            layout: EnvoyLayout::Paths,
        }
    }
}

impl EnvoyConfig {
    /// Returns the settings of a configuration.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        config.section::<Self>(ENVOY).cloned().unwrap_or_default()
    }
}

/// Makes Envoy's service a part of a configuration that is not read from files.
#[must_use]
pub fn with_envoy(mut config: Config, envoy: EnvoyConfig) -> Config {
    config.sections.retain(|section| section.name() != ENVOY);
    config.sections.push(FeatureSection::new(ENVOY, Arc::new(envoy)));
    config
}

/// The section of the file.
pub const SECTION: SectionSpec = SectionSpec {
    groups: &[
        SettingGroup { name: "", about: "", settings: table::SETTINGS },
        SettingGroup { name: "xds", about: "", settings: xds::SETTINGS },
        SettingGroup { name: "xds.tls", about: "", settings: xds::TLS_SETTINGS },
    ],
    defs: &[
        ("envoy_xds", xds::schema),
        ("envoy_rules", schemas::rules),
        ("envoy_all_or_none", schemas::all_or_none),
    ],
    suffices: Suffices::If(has_rules),
    reserved: Some((
        STRATEGY,
        "the counters of Envoy's files have this name; call the strategy something else",
    )),
    ..SectionSpec::new(ENVOY, "Envoy's rate limit service.", read)
};

/// True if files or a control plane are named.
fn has_rules(keys: &GivenKeys<'_, '_>) -> bool {
    keys.has(&CONFIG) || keys.has_mapping(XDS.key)
}

fn read(section: &mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>> {
    let envoy = EnvoyConfig {
        config: section.file(&CONFIG),
        merge_domains: section.switch(&MERGE_DOMAINS),
        isolate_domains: section.switch(&ISOLATE_DOMAINS),
        max_rules: usize::try_from(section.count(&MAX_RULES)).unwrap_or(usize::MAX),
        overrides_in_request: section.switch(&OVERRIDES_IN_REQUEST),
        headers: section.switch(&HEADERS),
        limit_header: section.header_name(&LIMIT_HEADER),
        remaining_header: section.header_name(&REMAINING_HEADER),
        reset_header: section.header_name(&RESET_HEADER),
        standard_headers: section.switch(&STANDARD_HEADERS),
        dynamic_metadata: section.switch(&DYNAMIC_METADATA),
        near_limit_ratio: section.part(&NEAR_LIMIT_RATIO),
        reference_metrics: section.switch(&REFERENCE_METRICS),
        count_rejected: section.switch(&COUNT_REJECTED),
        stop_when_over: section.switch(&STOP_WHEN_OVER),
        shadow_mode: section.switch(&SHADOW_MODE),
        quota_mode: section.switch(&QUOTA_MODE),
        ..EnvoyConfig::default()
    };
    let xds = xds::read(section, XDS.key);
    if xds.is_some() && envoy.config.is_some() {
        section.report(XDS.key, "domains come from `config` or from `xds`, not from both");
    }
    let rules = rules::read(section, RULES.key);
    let beside = [
        (COUNT_REJECTED.key, envoy.count_rejected),
        (STOP_WHEN_OVER.key, envoy.stop_when_over),
        (QUOTA_MODE.key, envoy.quota_mode),
    ];
    let all_or_none = all_or_none::read(section, ALL_OR_NONE.key, beside);
    section.show_whole(XDS.key, XDS.applies, xds.is_some().to_string());
    section.show_whole(ALL_OR_NONE.key, ALL_OR_NONE.applies, format!("{all_or_none:?}"));
    let rules = rules.counting_rejected(envoy.count_rejected).all_or_none(all_or_none.clone());
    section.show_whole(RULES.key, RULES.applies, format!("{rules:?}"));
    let layout = EnvoyLayout::given(section.given_beside_files(EnvoyLayout::KEY));
    Some(Arc::new(EnvoyConfig { xds, rules, all_or_none, layout, ..envoy }))
}
