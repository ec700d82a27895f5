//! Patterns of names, and a check for duplicates.

use std::collections::HashMap;
use std::hash::Hash;

use weir_core::key::MAX_PART;

use super::errors::{MistakeReport, Position};
use super::fields::NamedNode;
use super::values::{Scalar, quote, text_within};

/// Parses a name, or a prefix and a final `*`.
pub(super) fn pattern(scalar: Scalar<'_>) -> Result<String, String> {
    let text = text_within(scalar, MAX_PART)?;
    let prefix = text.strip_suffix('*').unwrap_or(&text);
    if prefix.contains('*') {
        return Err(format!("{}: a * can stand only at the end of a pattern", quote(&text)));
    }
    Ok(text)
}

/// Checks a name, or a prefix and a final `*`, as the configuration does. An error is a sentence that quotes the text.
pub fn check_pattern(text: &str) -> Result<(), String> {
    pattern(Scalar { text, quoted: true }).map(drop)
}

/// The keys seen so far, with their positions.
#[derive(Debug)]
pub(super) struct WrittenPatterns<K>(HashMap<K, Position>);

impl<K: Hash + Eq> WrittenPatterns<K> {
    /// Creates an empty set.
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// True if `key` is new. Otherwise reports `value` as a duplicate, under the name `shown`.
    pub(super) fn is_new(
        &mut self,
        key: K,
        value: &NamedNode<'_>,
        shown: &str,
        report: &mut MistakeReport,
    ) -> bool {
        if let Some(first) = self.0.get(&key) {
            let first = report.place(*first, value.at());
            value.report(report, format!("{shown} is given twice; the first is at {first}"));
            return false;
        }
        self.0.insert(key, value.at());
        true
    }
}
