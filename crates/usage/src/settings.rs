//! The section `usage` of the configuration: usage statistics of decisions, and access to them.

use std::sync::Arc;

use weir_config::{
    Config, FeatureSection, FeatureSetting, SectionReader, SectionSettings, SectionSpec, SettingForm,
    SettingGroup,
};

/// Upper bound of the sampling interval: one call in this many is the lowest rate other than none.
const MAX_SAMPLE: u64 = 1_000_000;

/// History of decisions, and who may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageConfig {
    /// True if `weir.v1.UsageService` is served.
    pub service: bool,
    /// The name of this node; left out, that of its host.
    pub node: Option<String>,
    /// Shares usage among the nodes on one Redis.
    pub shared: bool,
    /// The sample rate of consumers; 0 counts none.
    pub sample: u32,
    /// True if the usage of each second is written to RedisTimeSeries.
    pub timeseries: bool,
}

impl Default for UsageConfig {
    fn default() -> Self {
        Self { service: true, node: None, shared: true, sample: 16, timeseries: false }
    }
}

impl UsageConfig {
    /// Returns what a configuration says of usage.
    pub(crate) fn from_config(config: &Config) -> Self {
        config.section::<Self>(SECTION.name).cloned().unwrap_or_default()
    }
}

/// Makes settings of usage a part of a configuration that is not read from files.
#[must_use]
pub fn with_usage(mut config: Config, usage: UsageConfig) -> Config {
    config.sections.retain(|section| section.name() != SECTION.name);
    let node = usage.node.clone();
    let mut section = FeatureSection::new(SECTION.name, Arc::new(usage));
    section.node = node;
    config.sections.push(section);
    config
}

const SERVICE: FeatureSetting = FeatureSetting::new(
    "service",
    SettingForm::Switch,
    "Serves `weir.v1.UsageService` to all clients of `listen`.",
)
.or("true")
.more("Everybody who reaches `listen` can call it, and sees names of consumers.");

const NODE: FeatureSetting =
    FeatureSetting::new("node", SettingForm::NodeName("the name of its host"), "The name of this node.");

const SHARED: FeatureSetting =
    FeatureSetting::new("shared", SettingForm::Switch, "Shares usage among the nodes on one Redis.")
        .or("true")
        .more("So each answers for all.");

const SAMPLE: FeatureSetting = FeatureSetting::new(
    "sample",
    SettingForm::Count(0, MAX_SAMPLE),
    "The sample rate of consumers: the consumer of one call in so many is counted; 0 counts none.",
)
.or("16")
.at_reload()
.more("It finds the consumers that call most. 1 counts all.");

const TIMESERIES: FeatureSetting = FeatureSetting::new(
    "timeseries",
    SettingForm::Switch,
    "Writes the usage of each second to RedisTimeSeries, on the Redis of the store.",
)
.or("false")
.more("It needs `store: { redis: ... }`. See [RedisTimeSeries](usage.md#redistimeseries).");

pub(crate) const SECTION: SectionSpec = SectionSpec {
    groups: &[SettingGroup { name: "", about: "", settings: &[SERVICE, NODE, SHARED, SAMPLE, TIMESERIES] }],
    ..SectionSpec::new("usage", "Records of decisions, and their readers.", read)
};

fn read(section: &mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>> {
    let usage = UsageConfig {
        service: section.switch(&SERVICE),
        node: section.node_name(&NODE),
        shared: section.switch(&SHARED),
        sample: u32::try_from(section.count(&SAMPLE)).unwrap_or(u32::MAX),
        timeseries: section.switch(&TIMESERIES),
    };
    if usage.timeseries && !section.has_redis() {
        section.report(TIMESERIES.key, "it needs a Redis: set `store: { redis: ... }`");
    }
    Some(Arc::new(usage))
}

#[cfg(test)]
mod tests {
    use weir_config::{Applies, ConfigOverrides};

    use super::*;

    const STRATEGIES: &str =
        "strategies: { s: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/s } }] } }\n";

    fn parsed(text: &str) -> Result<Config, String> {
        let settings = ConfigOverrides::default().with_sections(vec![&SECTION]);
        Config::parse(&format!("{STRATEGIES}{text}"), "weir.yaml", &settings)
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn each_setting_is_read_and_has_its_default() {
        assert_eq!(UsageConfig::from_config(&parsed("").unwrap()), UsageConfig::default());
        let all = parsed(
            "usage: { service: false, node: a-1, shared: false, sample: 1_000, timeseries: true }\n\
             store: { redis: { nodes: ['redis://127.0.0.1:6379'] } }",
        );
        let all = all.unwrap();
        assert_eq!(all.node_name(), "a-1");
        let expected = UsageConfig {
            service: false,
            node: Some("a-1".to_owned()),
            shared: false,
            sample: 1_000,
            timeseries: true,
        };
        assert_eq!(UsageConfig::from_config(&all), expected);
        assert_eq!(with_usage(parsed("").unwrap(), expected).node_name(), "a-1");
    }

    #[test]
    fn mistakes_name_the_setting() {
        let long = format!("usage: {{ node: {} }}", "n".repeat(65));
        for (text, expected) in [
            (
                "usage: { sample: 1000001 }",
                "usage.sample: 1000001 is out of bounds: it must be from 0 to 1000000",
            ),
            (&long, "is no name of a node: 1 to 64 letters, digits, `.`, `_` and `-`"),
            ("usage: { node: a b }", "usage.node: \"a b\" is no name of a node"),
            (
                "usage: { timeseries: true }",
                "usage.timeseries: it needs a Redis: set `store: { redis: ... }`",
            ),
            ("usage: { service: 1 }", "usage.service: "),
            ("usage: { zzzz: 1 }", "zzzz"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Nodes with equal files have equal hashes, whatever their names are; a change is shown with both values.
    #[test]
    fn the_name_of_the_node_is_its_own_and_changes_are_compared() {
        let of = |text: &str| parsed(text).unwrap();
        let hash = |text: &str| of(text).fingerprint.to_string();
        assert_eq!(hash("usage: { node: a }"), hash(""));
        assert_ne!(hash("usage: { sample: 7 }"), hash(""));
        assert_eq!(hash("usage: { node: a, sample: 7 }"), hash("usage: { sample: 7, node: b }"));
        let changes = of("usage: { node: a }").setting_changes(&of("usage: { service: false, sample: 4 }"));
        let shown: Vec<_> = changes.iter().map(|change| (change.to_string(), change.applies)).collect();
        let expected = [
            ("usage.service: true -> false", Applies::AtRestart),
            ("usage.node: a -> the name of its host", Applies::AtRestart),
            ("usage.sample: 16 -> 4", Applies::AtReload),
        ];
        assert_eq!(shown, expected.map(|(text, applies)| (text.to_owned(), applies)));
    }
}
