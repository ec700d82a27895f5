//! A setting that differs between two configurations.

use std::fmt;

use super::entry::{Applies, Entry};
use super::kinds::SettingKind;

/// A setting that differs between two configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The path of the setting, such as `server.workers`.
    pub path: String,
    /// The time at which the change takes effect.
    pub applies: Applies,
    /// Both values as a file would write them, where they can be shown.
    pub values: Option<(String, String)>,
}

impl SettingChange {
    /// The change of a setting of the table.
    pub(crate) fn new<K: SettingKind>(
        entry: &Entry<K>,
        section: &str,
        before: &K::Value,
        after: &K::Value,
    ) -> Self {
        let unset = || entry.kind.unset().to_owned();
        let shown = |value| entry.kind.write(value).unwrap_or_else(unset);
        Self {
            path: format!("{section}.{}", entry.key),
            applies: entry.applies,
            values: Some((shown(before), shown(after))),
        }
    }

    /// The change of a section or a key with a reader of its own. Its values, which may be secrets, are not shown.
    pub(crate) fn whole(path: &str, applies: Applies) -> Self {
        Self { path: path.to_owned(), applies, values: None }
    }
}

impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            Some((before, after)) => write!(f, "{}: {before} -> {after}", self.path),
            None => write!(f, "{}: changed", self.path),
        }
    }
}
