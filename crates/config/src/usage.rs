//! The `usage` section: what is kept of decisions, and who may see it.

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::table::{MAX_NODE, UsageConfig};

/// The section.
pub(super) fn usage(
    mut fields: Mapping<'_>,
    has_redis: bool,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> UsageConfig {
    let usage = UsageConfig::read(&mut fields, overrides, report);
    if usage.timeseries && !has_redis {
        fields.report("timeseries", report, "it needs a Redis: set `store: { redis: ... }`".to_owned());
    }
    fields.finish(report);
    usage
}

impl UsageConfig {
    /// What this node is called: as configured, or as its host is.
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
