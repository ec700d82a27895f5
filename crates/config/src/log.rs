//! The `log` section: the decision log.

use std::fmt;
use std::path::{Path, PathBuf};

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::key_share::KeyShare;
use super::overrides::ConfigOverrides;
use super::table::log as log_keys;

/// The configuration of the decision log.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionLogConfig {
    /// The share of keys whose decisions are logged.
    pub keys: KeyShare,
    /// The target of the log.
    pub to: LogTarget,
    /// The target of an additional log of all denials, if there is one.
    pub denied: Option<LogTarget>,
    /// Size at which a file is rotated.
    pub max_bytes: u64,
    /// Number of files of a rotated log, including the current one.
    pub max_files: usize,
}

/// The target of log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file, in append mode.
    File(PathBuf),
}

impl Default for DecisionLogConfig {
    /// Off.
    fn default() -> Self {
        Self {
            keys: log_keys::KEYS.default,
            to: LogTarget::Stdout,
            denied: None,
            max_bytes: log_keys::MAX_BYTES.default,
            max_files: log_keys::MAX_FILES.default,
        }
    }
}

impl DecisionLogConfig {
    /// True if nothing is logged.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.keys == KeyShare::NONE && self.denied.is_none()
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Reads the `log` section.
pub(super) fn log(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> DecisionLogConfig {
    let decisions = fields.section("decisions", report);
    fields.finish(report);
    self::decisions(decisions, overrides, report)
}

fn decisions(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> DecisionLogConfig {
    let default = DecisionLogConfig::default();
    let keys = fields.setting(&log_keys::KEYS, &overrides.given, report);
    let file = fields.value(log_keys::FILE, &overrides.given, report);
    let denied = fields.setting(&log_keys::DENIED, &overrides.given, report);
    let denied_file = fields.value(log_keys::DENIED_FILE, &overrides.given, report);
    let max_bytes = fields.setting(&log_keys::MAX_BYTES, &overrides.given, report);
    let max_files = fields.setting(&log_keys::MAX_FILES, &overrides.given, report);
    if fields.is_present() && fields.is_whole() && keys.is_none() && denied.is_none() {
        fields.report_here(report, "logs nothing; add `keys`, such as keys: 0.01, or `denied: true`");
    }
    if denied_file.is_some() && denied != Some(true) {
        fields.report("denied_file", report, "is for the log of denials; add `denied: true`, or remove it");
    }
    if file.is_some() && file == denied_file {
        fields.report("denied_file", report, "is the file of the other log too; each needs its own");
    }
    for (name, given) in [("max_bytes", max_bytes.is_some()), ("max_files", max_files.is_some())] {
        if given && file.is_none() && denied_file.is_none() {
            fields.report(name, report, "is for files, but this log is written to standard output");
        }
    }
    fields.finish(report);
    let denied = denied.unwrap_or(log_keys::DENIED.default).then(|| {
        let beside = denied_file.or_else(|| file.as_deref().map(beside));
        beside.map_or(LogTarget::Stdout, LogTarget::File)
    });
    DecisionLogConfig {
        keys: keys.unwrap_or(default.keys),
        to: file.map_or(LogTarget::Stdout, LogTarget::File),
        denied,
        max_bytes: max_bytes.unwrap_or(default.max_bytes),
        max_files: max_files.unwrap_or(default.max_files),
    }
}

/// Derives `decisions.denied.jsonl` from `decisions.jsonl`.
fn beside(file: &Path) -> PathBuf {
    match file.extension() {
        Some(extension) => {
            let mut denied = std::ffi::OsString::from("denied.");
            denied.push(extension);
            file.with_extension(denied)
        }
        None => file.with_extension("denied"),
    }
}
