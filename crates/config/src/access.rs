//! The `access` section of the file and of a strategy: the deny list and the allow list of consumers.

use weir_core::strategy::Access;

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::patterns::{WrittenPatterns, pattern};
use super::values::quote;

/// Reads the lists of a section.
pub(super) fn access(mut section: Mapping<'_>, report: &mut MistakeReport) -> Access {
    let allow = list(&mut section, "allow", report);
    let deny = list(&mut section, "deny", report);
    section.finish(report);
    Access::new(deny, allow)
}

/// Reads a list of consumers and patterns. A consumer on both lists is denied, so overlaps are allowed.
fn list(section: &mut Mapping<'_>, name: &'static str, report: &mut MistakeReport) -> Vec<String> {
    let items = section.take(name).and_then(|value| value.items(report)).unwrap_or_default();
    let mut seen = WrittenPatterns::new();
    let mut entries = Vec::with_capacity(items.len());
    for item in &items {
        let Some(entry) = item.read(report, pattern) else { continue };
        if seen.is_new(entry.clone(), item, &quote(&entry), report) {
            entries.push(entry);
        }
    }
    entries
}
