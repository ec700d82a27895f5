//! The `usage` section: usage statistics of decisions, and access to them.

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::table::{MAX_NODE, UsageConfig};

/// Reads the section.
pub(super) fn usage(
    mut fields: Mapping<'_>,
    has_redis: bool,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> UsageConfig {
    let usage = UsageConfig::read(&mut fields, &overrides.given, report);
    if usage.timeseries && !has_redis {
        fields.report("timeseries", report, "it needs a Redis: set `store: { redis: ... }`".to_owned());
    }
    fields.finish(report);
    usage
}

impl UsageConfig {
    /// Returns this node's name: the configured one, or the host name.
    #[must_use]
    pub fn node(&self) -> String {
        let host = || {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let plain = |letter: char| {
                if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' }
            };
            let host: String = host.chars().take(MAX_NODE).map(plain).collect();
            if host.is_empty() { "node".to_owned() } else { host }
        };
        self.node.clone().unwrap_or_else(host)
    }
}
