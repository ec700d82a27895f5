//! Patterns of names, and what may be written only once.

use std::collections::HashMap;
use std::hash::Hash;

use weir_core::key::MAX_PART;

use super::errors::{MistakeReport, Position};
use super::fields::NamedNode;
use super::values::{Scalar, quote, text_within};

/// A name, or a prefix and a final `*`.
pub(super) fn pattern(scalar: Scalar<'_>) -> Result<String, String> {
    let text = text_within(scalar, MAX_PART)?;
    let prefix = text.strip_suffix('*').unwrap_or(&text);
    if prefix.contains('*') {
        return Err(format!("{}: a * can stand only at the end of a pattern", quote(&text)));
    }
    Ok(text)
}

/// What has been written, and where.
#[derive(Debug)]
pub(super) struct WrittenPatterns<K>(HashMap<K, Position>);

impl<K: Hash + Eq> WrittenPatterns<K> {
    /// Nothing so far.
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Whether `key` is new; if not, `value` is reported, where it is called `shown`.
    pub(super) fn is_new(
        &mut self,
        key: K,
        value: &NamedNode<'_>,
        shown: &str,
        report: &mut MistakeReport,
    ) -> bool {
        if let Some(Position { line, column }) = self.0.get(&key) {
            value.report(report, format!("{shown} is given twice; the first is at {line}:{column}"));
            return false;
        }
        self.0.insert(key, value.at());
        true
    }
}
