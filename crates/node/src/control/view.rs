//! The entries of a time, as callers see them.

use std::sync::Arc;

use weir_core::control::ControlPosition;
use weir_proto::v1::ControlEntry;

use super::entry::LiveEntry;

/// The entries of a time.
#[derive(Debug, Clone, Default)]
pub struct ControlView {
    /// All entries by their keys, also deleted ones and those that are over.
    pub(super) entries: Vec<Arc<LiveEntry>>,
    /// The last change that this node knows.
    pub position: ControlPosition,
    /// Why entries of other nodes may be missing.
    pub incomplete: Option<String>,
    /// The time of the last look at the entries, in microseconds since 1970.
    pub(super) now: u64,
}

impl ControlView {
    /// The entries that live, with their keys, in the order of the keys.
    pub fn living(&self) -> impl Iterator<Item = (&str, &ControlEntry)> {
        self.entries.iter().filter(|entry| entry.lives(self.now)).map(|entry| (&*entry.key, &entry.message))
    }

    /// The living entry of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ControlEntry> {
        let place = self.entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
        let entry = self.entries.get(place).filter(|entry| entry.lives(self.now))?;
        Some(&entry.message)
    }

    /// The entries that differ from those of `before`: new, changed, and gone ones.
    #[must_use]
    pub fn changes(&self, before: &Self) -> Vec<ViewedEntry> {
        let change = |entry: &Arc<LiveEntry>| {
            let place = before.entries.binary_search_by(|known| known.key.cmp(&entry.key)).ok();
            let known = place.and_then(|place| before.entries.get(place));
            let lived = known.is_some_and(|known| known.lives(before.now));
            let is_same = known.is_some_and(|known| known.version == entry.version);
            let is_gone = !entry.lives(self.now);
            let is_shown = if is_gone { lived } else { !lived || !is_same };
            is_shown.then(|| ViewedEntry { entry: Arc::clone(entry), is_gone })
        };
        self.entries.iter().filter_map(change).collect()
    }
}

/// An entry that has changed.
#[derive(Debug, Clone)]
pub struct ViewedEntry {
    entry: Arc<LiveEntry>,
    is_gone: bool,
}

impl ViewedEntry {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.entry.key
    }

    /// The message; of one that is deleted or over, with `deleted`.
    #[must_use]
    pub fn message(&self) -> ControlEntry {
        ControlEntry { deleted: self.is_gone, ..self.entry.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, version: u64, expires_at: u64, deleted: bool) -> Arc<LiveEntry> {
        let message = ControlEntry { deleted, ..ControlEntry::default() };
        let version = ControlPosition { version, change: 1 };
        Arc::new(LiveEntry { key: key.into(), version, expires_at, message })
    }

    fn view(entries: Vec<Arc<LiveEntry>>, now: u64) -> ControlView {
        ControlView { entries, now, ..ControlView::default() }
    }

    #[test]
    fn what_is_new_changed_deleted_or_over_has_changed() {
        let before =
            view(vec![entry("a", 1, 0, false), entry("b", 1, 0, false), entry("d", 1, 50, false)], 10);
        let after = view(
            vec![
                entry("a", 2, 0, false),
                entry("b", 3, 0, true),
                entry("c", 4, 0, false),
                entry("d", 1, 50, false),
                entry("e", 5, 0, true),
            ],
            60,
        );
        let seen = |all: Vec<ViewedEntry>| {
            all.iter().map(|one| (one.key().to_owned(), one.message().deleted)).collect::<Vec<_>>()
        };
        let expected = [("a", false), ("b", true), ("c", false), ("d", true)];
        assert_eq!(seen(after.changes(&before)), expected.map(|(key, gone)| (key.to_owned(), gone)));
        assert_eq!(seen(after.changes(&after)), []);
        assert_eq!(after.living().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "c"]);
    }
}
