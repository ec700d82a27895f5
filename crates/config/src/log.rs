//! The `log` section: which decisions are logged, and where to.

use std::fmt;
use std::path::{Path, PathBuf};

use super::errors::MistakeReport;
use super::fields::{MAX_PATH, Mapping};
use super::key_share::KeyShare;
use super::quantities::size;
use super::values::{Digits, Scalar, boolean, digits, integer_within, quote, text_within, within};

/// What is logged of decisions, and where to.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionLogConfig {
    /// The share of keys that are logged.
    pub keys: KeyShare,
    /// Where to.
    pub to: LogTarget,
    /// Where all denials are logged besides, if they are.
    pub denied: Option<LogTarget>,
    /// From which size on a file is followed by the next.
    pub max_bytes: u64,
    /// How many files of a log there are, with the one that is written.
    pub max_files: usize,
}

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file, to which lines are appended.
    File(PathBuf),
}

/// The smallest and the largest file of a log, in bytes.
pub(super) const FILE_BYTES: (usize, usize) = (1 << 20, 1 << 40);

/// The most files of a log.
pub(super) const MAX_FILES: usize = 1000;

impl Default for DecisionLogConfig {
    /// Nothing is logged.
    fn default() -> Self {
        Self { keys: KeyShare::NONE, to: LogTarget::Stdout, denied: None, max_bytes: 100 << 20, max_files: 5 }
    }
}

impl DecisionLogConfig {
    /// Whether it logs nothing.
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

/// The `log` section.
pub(super) fn log(mut fields: Mapping<'_>, report: &mut MistakeReport) -> DecisionLogConfig {
    let decisions = fields.section("decisions", report);
    fields.finish(report);
    self::decisions(decisions, report)
}

fn decisions(mut fields: Mapping<'_>, report: &mut MistakeReport) -> DecisionLogConfig {
    let default = DecisionLogConfig::default();
    let keys = fields.read("keys", report, share);
    let file = path("file", &mut fields, report);
    let denied = fields.read("denied", report, boolean);
    let denied_file = path("denied_file", &mut fields, report);
    let max_bytes = fields.read("max_bytes", report, |s| within(size(s)?, FILE_BYTES.0, FILE_BYTES.1));
    let max_files = fields.read("max_files", report, |s| integer_within(s, 1, MAX_FILES));
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
    let denied = denied.unwrap_or(false).then(|| {
        let beside = denied_file.or_else(|| file.as_deref().map(beside));
        beside.map_or(LogTarget::Stdout, LogTarget::File)
    });
    DecisionLogConfig {
        keys: keys.unwrap_or(default.keys),
        to: file.map_or(LogTarget::Stdout, LogTarget::File),
        denied,
        max_bytes: max_bytes.map_or(default.max_bytes, |bytes| bytes as u64),
        max_files: max_files.unwrap_or(default.max_files),
    }
}

/// A path, which is relative to the configuration.
fn path(name: &'static str, fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<PathBuf> {
    let path = fields.read(name, report, |s| text_within(s, MAX_PATH).map(PathBuf::from));
    path.map(|path| report.resolve(&path))
}

/// `decisions.denied.jsonl` beside `decisions.jsonl`.
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

/// A part of one, such as `0.01`.
fn share(scalar: Scalar<'_>) -> Result<KeyShare, String> {
    let (whole, fraction) = scalar.text.split_once('.').unwrap_or((scalar.text, "0"));
    let plain = |text: &str| matches!(digits(text), Digits::Number(_)) && !text.contains('_');
    let part = scalar.text.parse::<f64>().ok().filter(|_| plain(whole) && plain(fraction) && !scalar.quoted);
    part.and_then(KeyShare::new)
        .ok_or_else(|| format!("{} is not a part of one, from 0 to 1, such as 0.01", quote(scalar.text)))
}
