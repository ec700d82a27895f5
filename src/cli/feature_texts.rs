//! Texts of commands about the sections that features read.

use weir_config::Config;

/// The texts about one feature.
struct FeatureTexts {
    /// The contents of the section, for `weir check`; `None` if it has nothing.
    summary: fn(&Config) -> Option<String>,
    /// The differences between two configurations, a line each.
    changes: fn(&Config, &Config) -> Vec<String>,
    /// The arguments of a command to try.
    example: fn(&Config) -> Option<String>,
}

const ALL: &[FeatureTexts] = &[
    #[cfg(feature = "envoy")]
    FeatureTexts {
        summary: super::envoy::summary,
        changes: super::envoy::changes,
        example: super::envoy::example,
    },
    #[cfg(feature = "queues")]
    FeatureTexts {
        summary: super::queues::summary,
        changes: super::queues::changes,
        example: super::queues::example,
    },
];

/// The arguments of commands for configurations with nothing else to try.
const LAST: &[fn(&Config) -> Option<String>] = &[
    #[cfg(feature = "leases")]
    super::leases::example,
];

/// The sources of rules of features, for the first lines of a node.
const SOURCES: &[fn(&Config) -> Option<String>] = &[
    #[cfg(feature = "envoy")]
    super::envoy::source,
];

/// Returns where rules of features come from, a line each.
pub(super) fn sources(config: &Config) -> impl Iterator<Item = String> {
    SOURCES.iter().filter_map(|source| source(config))
}

/// Returns what the sections have.
pub(super) fn summaries(config: &Config) -> impl Iterator<Item = String> {
    ALL.iter().filter_map(|texts| (texts.summary)(config))
}

/// Returns what differs, a line each.
pub(super) fn changes(old: &Config, new: &Config) -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|texts| (texts.changes)(old, new))
}

/// Returns the arguments of commands to try.
pub(super) fn examples(config: &Config) -> impl Iterator<Item = String> {
    ALL.iter().filter_map(|texts| (texts.example)(config))
}

/// Returns the arguments of commands for configurations with nothing else to try.
pub(super) fn last_examples(config: &Config) -> impl Iterator<Item = String> {
    LAST.iter().filter_map(|example| example(config))
}
