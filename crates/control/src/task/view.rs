//! The entries of a time, as callers see them.

use std::collections::BTreeSet;
use std::sync::Arc;

use rpds::{QueueSync, RedBlackTreeMapSync};
use weir_proto::v1::ControlEntry;

use super::entry::LiveEntry;
use crate::model::ControlPosition;

/// All entries by their keys. Views share what did not change between them.
pub(super) type LiveEntries = RedBlackTreeMapSync<Arc<str>, Arc<LiveEntry>>;

/// Changes that a view keeps, so that a watcher of the view before finds them without a search.
const MAX_RECENT: usize = 4_096;

/// The entries of a time.
#[derive(Debug, Clone, Default)]
pub struct ControlView {
    /// All entries by their keys, also deleted and ended ones.
    pub(super) entries: LiveEntries,
    /// Number of the view, which grows with each set of changes.
    pub(super) revision: u64,
    /// The keys that changed last, each with the revision that has the change.
    pub(super) recent: QueueSync<(u64, Arc<str>)>,
    /// `recent` has all changes of the revisions after this one.
    pub(super) recent_after: u64,
    /// The last change that this node knows.
    pub position: ControlPosition,
    /// Reason why entries of other nodes may be missing.
    pub incomplete: Option<String>,
    /// The time of the last look at the entries, in microseconds since 1970.
    pub(super) now: u64,
}

impl ControlView {
    /// The view after this one that has other entries, all of which may have changed.
    pub(super) fn anew(&self, entries: LiveEntries, now: u64) -> Self {
        let revision = self.revision + 1;
        Self { entries, revision, recent: QueueSync::default(), recent_after: revision, now, ..self.clone() }
    }

    /// The view after this one in which the entries of these keys are others, or gone.
    pub(super) fn edited(&self, changed: &[KeyChange], now: u64) -> Self {
        let mut next = Self { revision: self.revision + 1, now, ..self.clone() };
        for KeyChange { key, after, .. } in changed {
            match after {
                Some(entry) => next.entries.insert_mut(Arc::clone(key), Arc::clone(entry)),
                None => {
                    next.entries.remove_mut(key);
                }
            }
            next.recent.enqueue_mut((next.revision, Arc::clone(key)));
            if next.recent.len() > MAX_RECENT {
                next.recent_after = next.recent.peek().map_or(next.revision, |(revision, _)| *revision);
                next.recent.dequeue_mut();
            }
        }
        next
    }

    /// The entries that live, with their keys, in the order of the keys.
    pub fn living(&self) -> impl Iterator<Item = (&str, &ControlEntry)> {
        let living = self.entries.values().filter(|entry| entry.lives(self.now));
        living.map(|entry| (&*entry.key, &entry.message))
    }

    /// The living entry of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ControlEntry> {
        self.entries.get(key).filter(|entry| entry.lives(self.now)).map(|entry| &entry.message)
    }

    /// The entries that differ from those of `before`: new, changed, and gone ones. An entry that is forgotten was gone.
    #[must_use]
    pub fn changes(&self, before: &Self) -> Vec<ViewedEntry> {
        if self.revision == before.revision {
            return Vec::new();
        }
        if before.revision < self.recent_after {
            return self.entries.values().filter_map(|entry| self.change(entry, before)).collect();
        }
        let since = self.recent.iter().filter(|(revision, _)| *revision > before.revision);
        let keys: BTreeSet<&Arc<str>> = since.map(|(_, key)| key).collect();
        let entries = keys.into_iter().filter_map(|key| self.entries.get(key));
        entries.filter_map(|entry| self.change(entry, before)).collect()
    }

    fn change(&self, entry: &Arc<LiveEntry>, before: &Self) -> Option<ViewedEntry> {
        let known = before.entries.get(&*entry.key);
        let lived = known.is_some_and(|known| known.lives(before.now));
        let is_same = known.is_some_and(|known| known.version == entry.version);
        let is_gone = !entry.lives(self.now);
        let is_shown = if is_gone { lived } else { !lived || !is_same };
        is_shown.then(|| ViewedEntry { entry: Arc::clone(entry), is_gone })
    }
}

/// Change of the entry of a key.
#[derive(Debug, Clone)]
pub(super) struct KeyChange {
    pub(super) key: Arc<str>,
    pub(super) before: Option<Arc<LiveEntry>>,
    pub(super) after: Option<Arc<LiveEntry>>,
}

/// An entry that has changed.
#[derive(Debug, Clone)]
pub struct ViewedEntry {
    entry: Arc<LiveEntry>,
    is_gone: bool,
}

impl ViewedEntry {
    /// Key of the entry.
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

    fn map(entries: Vec<Arc<LiveEntry>>) -> LiveEntries {
        entries.into_iter().map(|entry| (Arc::clone(&entry.key), entry)).collect()
    }

    fn seen(all: &[ViewedEntry]) -> Vec<(String, bool)> {
        all.iter().map(|one| (one.key().to_owned(), one.message().deleted)).collect()
    }

    /// Entries before, at 10, and after, at 60.
    fn both() -> (ControlView, Vec<Arc<LiveEntry>>) {
        let before = vec![entry("a", 1, 0, false), entry("b", 1, 0, false), entry("d", 1, 50, false)];
        let after = vec![
            entry("a", 2, 0, false),
            entry("b", 3, 0, true),
            entry("c", 4, 0, false),
            entry("d", 1, 50, false),
            entry("e", 5, 0, true),
        ];
        (ControlView::default().anew(map(before), 10), after)
    }

    #[test]
    fn what_is_new_changed_deleted_or_over_has_changed() {
        let (before, after) = both();
        let expected = [("a", false), ("b", true), ("c", false), ("d", true)];
        let expected = expected.map(|(key, gone)| (key.to_owned(), gone));
        let changed = after.iter().map(|entry| KeyChange {
            key: Arc::clone(&entry.key),
            before: before.entries.get(&entry.key).cloned(),
            after: Some(Arc::clone(entry)),
        });
        let edited = before.edited(&changed.collect::<Vec<_>>(), 60);
        for after in [before.anew(map(after), 60), edited] {
            assert_eq!(seen(&after.changes(&before)), expected);
            assert_eq!(seen(&after.changes(&after)), []);
            assert_eq!(after.living().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "c"]);
        }
    }

    /// A watcher that has missed views finds every change, however long it was away.
    #[test]
    fn changes_add_up_over_many_views() {
        let first = ControlView::default().anew(map(vec![entry("k3", 1, 0, false)]), 10);
        let (mut view, mut behind) = (first.clone(), vec![first.clone()]);
        for number in 0..2 * MAX_RECENT as u64 {
            let key: Arc<str> = format!("k{}", number % 50).into();
            let after = Some(entry(&key, 10 + number, 0, number % 3 == 0));
            let before = view.entries.get(&key).cloned();
            view = view.edited(&[KeyChange { key, before, after }], 10);
            if number % 97 == 0 {
                behind.push(view.clone());
            }
        }
        for before in &behind {
            let whole = view.entries.values().filter_map(|entry| view.change(entry, before));
            let whole: Vec<ViewedEntry> = whole.collect();
            assert_eq!(seen(&view.changes(before)), seen(&whole), "from revision {}", before.revision);
        }
    }
}
