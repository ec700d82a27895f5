//! The `usage` section: what is kept of decisions, and who may see it.

use super::UsageConfig;
use super::errors::MistakeReport;
use super::fields::Mapping;
use super::values::{Scalar, boolean, integer_within, quote};

/// The longest name of a node.
pub(super) const MAX_NODE: usize = 64;

/// The largest part of calls whose consumers are not looked at.
pub(super) const MAX_SAMPLE: u32 = 1_000_000;

/// The section.
pub(super) fn usage(mut fields: Mapping<'_>, has_redis: bool, report: &mut MistakeReport) -> UsageConfig {
    let default = UsageConfig::default();
    let usage = UsageConfig {
        service: fields.read("service", report, boolean).unwrap_or(default.service),
        node: fields.read("node", report, node),
        shared: fields.read("shared", report, boolean).unwrap_or(default.shared),
        sample: fields
            .read("sample", report, |s| integer_within(s, 0, MAX_SAMPLE as usize))
            .and_then(|sample| u32::try_from(sample).ok())
            .unwrap_or(default.sample),
        timeseries: fields.read("timeseries", report, boolean).unwrap_or(default.timeseries),
    };
    if usage.timeseries && !has_redis {
        fields.report("timeseries", report, "it needs a Redis: set `store: { redis: ... }`".to_owned());
    }
    fields.finish(report);
    usage
}

/// A name that can be a part of a key.
fn node(scalar: Scalar<'_>) -> Result<String, String> {
    let text = scalar.text;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.is_empty() || text.len() > MAX_NODE || !text.bytes().all(plain) {
        return Err(format!(
            "{} is no name of a node: 1 to {MAX_NODE} letters, digits, `.`, `_` and `-`",
            quote(text)
        ));
    }
    Ok(text.to_owned())
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
