//! Serving the records of the mirror: changed entries become edits of the rules in force, whose cost does not grow with
//! the number of entries. Only new numbers of strategies, a clock that was set back, and changes of most entries
//! rebuild the rules.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use weir_node::overlay_target::Overlay;
use weir_proto::v1::ControlChange;
use weir_time::clock::monotonic;
use weir_units::Micros;

use super::ControlTask;
use super::entry::LiveEntry;
use super::overlay::ControlOverlay;
use super::view::{ControlView, KeyChange, LiveEntries};
use crate::model::{ControlRecord, GENERATION_PREFIX};

/// Least time between two writings of the cache file, where Redis has the entries too.
const CACHE_EVERY: Duration = Duration::from_secs(1);

/// Changed entries that are always edits, and the part of all entries that is.
const EDITED: usize = 64;
const EDITED_PART: usize = 4;

/// Steps back of the clock that are small.
const SMALL_STEP: Micros = Micros::from_secs(1);

impl ControlTask {
    /// Follows the store, and ends entries that are over.
    pub(super) async fn tick(&mut self) {
        self.poll().await;
        self.poll_bans().await;
        let now = self.clock.now().0;
        if self.store.is_memory() {
            // On Redis its clock says what is old: one that runs ahead here must not forget deletions.
            let dropped = self.mirror.drop_old(now);
            self.forget(&dropped);
        }
        let view = Arc::clone(&self.view.borrow());
        let now = self.now_after(&view);
        if now < view.now || self.ends.first().is_some_and(|(ends, _)| *ends <= now) {
            self.serve(BTreeSet::new());
        }
        let position = self.mirror.last_position();
        if view.position != position || view.incomplete != self.incomplete {
            self.loads.set_control(position.version);
            let incomplete = self.incomplete.clone();
            self.view.send_modify(|view| {
                *view = Arc::new(ControlView { position, incomplete, ..ControlView::clone(view) });
            });
        }
        self.save(false);
    }

    /// Serves what has changed in the mirror, and keeps it.
    pub(super) fn changed(&mut self) {
        let touched = self.mirror.take_touched();
        if touched.is_empty() {
            return;
        }
        if self.cache.is_some() && !self.store.is_memory() {
            self.unsaved.extend(touched.iter().cloned());
        }
        let before = Arc::clone(&self.view.borrow());
        self.serve(touched);
        let after = Arc::clone(&self.view.borrow());
        for change in after.changes(&before) {
            let before = before.get(change.key()).cloned();
            self.history.push(ControlChange { after: Some(change.message()), before });
        }
    }

    /// Serves what the mirror has under these keys now, and ends what is over.
    fn serve(&mut self, mut keys: BTreeSet<Box<str>>) {
        let before = Arc::clone(&self.view.borrow());
        let now = self.now_after(&before);
        while let Some((ends, key)) = self.ends.pop_first() {
            if ends > now {
                self.ends.insert((ends, key));
                break;
            }
            keys.insert((&*key).into());
        }
        let is_wide = keys.len() > EDITED.max(before.entries.size() / EDITED_PART);
        let is_general = keys.iter().any(|key| key.starts_with(GENERATION_PREFIX));
        if now < before.now || is_wide || is_general {
            return self.apply();
        }
        let changed: Vec<KeyChange> = keys.iter().map(|key| self.changed_entry(key, &before, now)).collect();
        let view = before.edited(&changed, now);
        let overlay = self.overlay(view.entries.clone(), now);
        let shared = &self.shared;
        self.target
            .edit_overlay(overlay, &|files: &_, written: &_| shared.edits(&changed, now, (files, written)));
        self.publish(view);
    }

    fn changed_entry(&mut self, key: &str, view: &ControlView, now: u64) -> KeyChange {
        let before = view.entries.get(key).cloned();
        let record = self.mirror.get(key);
        if let Some(record) = record {
            self.made.push(record.change, record.version);
        }
        let same =
            before.clone().filter(|entry| record.is_some_and(|record| entry.version == record.position()));
        let after = same.or_else(|| record.and_then(read));
        let key: Arc<str> = key.into();
        for (entry, is_there) in [(&before, false), (&after, true)] {
            let Some(entry) = entry.as_ref().filter(|entry| entry.expires_at > 0) else { continue };
            let end = (entry.expires_at, Arc::clone(&key));
            if is_there && entry.lives(now) {
                self.ends.insert(end);
            } else {
                self.ends.remove(&end);
            }
        }
        KeyChange { key, before, after }
    }

    /// The time of the next view. A small step back of the clock is ignored: ended entries stay ended, and nothing is
    /// rebuilt.
    fn now_after(&self, view: &ControlView) -> u64 {
        let now = self.clock.now().0;
        if now.saturating_add(SMALL_STEP.0) < view.now { now } else { now.max(view.now) }
    }

    /// Serves all that the mirror has.
    pub(super) fn apply(&mut self) {
        // They are all read below.
        let touched = self.mirror.take_touched();
        if self.cache.is_some() && !self.store.is_memory() {
            self.unsaved.extend(touched);
        }
        let now = self.clock.now().0;
        let known = Arc::clone(&self.view.borrow());
        let (mut entries, mut generations) = (LiveEntries::default(), HashMap::new());
        self.ends.clear();
        for record in self.mirror.records() {
            self.made.push(record.change, record.version);
            if let Some(name) = record.key.strip_prefix(GENERATION_PREFIX) {
                // Its version is the generation.
                generations.insert(name.into(), record.version);
                continue;
            }
            let same = known.entries.get(&*record.key).filter(|entry| entry.version == record.position());
            let Some(entry) = same.cloned().or_else(|| read(record)) else { continue };
            if entry.expires_at > 0 && entry.lives(now) {
                self.ends.insert((entry.expires_at, Arc::clone(&entry.key)));
            }
            entries.insert_mut(Arc::clone(&entry.key), entry);
        }
        self.generations = Arc::new(generations);
        let has_none = self.generations.is_empty() && !entries.values().any(|entry| entry.lives(now));
        let overlay = (!has_none).then(|| self.overlay(entries.clone(), now));
        if has_none {
            self.shared.clear();
        }
        self.target.set_overlay(overlay);
        self.publish(known.anew(entries, now));
    }

    /// The rules in force of all entries, for files that are read later.
    fn overlay(&self, entries: LiveEntries, now: u64) -> Overlay {
        let (generations, shared) = (Arc::clone(&self.generations), Arc::clone(&self.shared));
        let overlay = ControlOverlay { entries, now, generations, shared };
        Arc::new(move |rules: &_, written: &_| overlay.over(rules, written))
    }

    fn publish(&mut self, view: ControlView) {
        let (position, incomplete) = (self.mirror.last_position(), self.incomplete.clone());
        self.loads.set_control(position.version);
        self.view.send_replace(Arc::new(ControlView { position, incomplete, ..view }));
    }

    /// Forgets entries that ended long ago. They have had no effect since.
    pub(super) fn forget(&mut self, dropped: &[Box<str>]) {
        let gone: Vec<&str> =
            dropped.iter().map(|key| &**key).filter(|key| self.mirror.get(key).is_none()).collect();
        if gone.is_empty() {
            return;
        }
        self.view.send_modify(|view| {
            let mut next = ControlView::clone(view);
            for key in &gone {
                next.entries.remove_mut(*key);
            }
            *view = Arc::new(next);
        });
    }

    /// Writes what the cache file lacks: where Redis has the entries too, at most once a second.
    pub(super) fn save(&mut self, at_once: bool) {
        let Some(cache) = self.cache.as_mut() else { return };
        let since = self.cached_at.map(|at| monotonic().saturating_duration_since(at));
        let is_due = at_once || since.is_none_or(|since| since >= CACHE_EVERY);
        if !is_due || (self.unsaved.is_empty() && !cache.is_long()) {
            return;
        }
        let position = self.mirror.last_position();
        let written = if cache.is_long() {
            cache.write(self.mirror.records(), position)
        } else {
            let records = self.unsaved.iter().filter_map(|key| self.mirror.get(key).cloned());
            cache.append(&records.collect::<Vec<_>>(), position)
        };
        match written {
            Ok(()) => self.unsaved.clear(),
            Err(error) => tracing::warn!(%error, "cannot write the cache file of live control; will retry"),
        }
        self.cached_at = Some(monotonic());
    }
}

fn read(record: &ControlRecord) -> Option<Arc<LiveEntry>> {
    LiveEntry::read(record).ok().flatten().map(Arc::new)
}
