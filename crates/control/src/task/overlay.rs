//! Entries on top of the files: the rules in force. An entry that the files do not fit waits, and says why.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_config::{LimitNumbers, WrittenStrategies};
use weir_core::strategy::{AccessEntry, Override, RuleChanges, RuleEdit, Rules, Strategy, StrategyId};
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{ControlAccess, ControlOverride, ControlStrategy};

use super::entry::{LiveEntry, listed};
use super::view::{KeyChange, LiveEntries};
use crate::model::ControlPosition;

/// The entries in force at a time.
pub(super) struct ControlOverlay {
    pub(super) entries: LiveEntries,
    /// The time for which entries count as live or ended.
    pub(super) now: u64,
    /// The generations of strategies.
    pub(super) generations: Arc<HashMap<Box<str>, u64>>,
    pub(super) shared: Arc<OverlayState>,
}

/// State that outlasts one set of entries.
#[derive(Default)]
pub(super) struct OverlayState {
    /// Overrides that were read, by the keys of their entries: a change of one entry does not read all again.
    parsed: Mutex<HashMap<Arc<str>, ParsedOverride>>,
    /// Reasons why entries wait, by their keys.
    waiting: Mutex<HashMap<Arc<str>, String>>,
}

#[derive(Clone)]
struct ParsedOverride {
    version: ControlPosition,
    base: StrategyId,
    strategy: Strategy,
}

impl OverlayState {
    /// Forgets what was known of all entries.
    pub(super) fn clear(&self) {
        self.parsed.lock().clear();
        self.waiting.lock().clear();
    }

    /// Reason why an entry waits.
    pub(super) fn waiting(&self, key: &str) -> Option<String> {
        self.waiting.lock().get(key).cloned()
    }

    /// The edits of the rules in force that follow from changed entries. `None` if the rules must be rebuilt, because a
    /// strategy has other numbers.
    pub(super) fn edits(
        &self,
        changed: &[KeyChange],
        now: u64,
        (files, written): (&Rules, &WrittenStrategies),
    ) -> Option<Vec<RuleEdit>> {
        let mut edits = Vec::with_capacity(changed.len());
        for KeyChange { key, before, after } in changed {
            let either = after.as_ref().or(before.as_ref());
            let living = after.as_ref().filter(|entry| entry.lives(now));
            let Some(what) = either.and_then(|entry| entry.message.entry.as_ref()) else { continue };
            let done = match what {
                Entry::Strategy(_) => return None,
                Entry::Access(one) => access(one, files).map(|entry| match living {
                    Some(_) => RuleEdit::SetAccess(entry),
                    None => RuleEdit::RemoveAccess(entry),
                }),
                Entry::Override(one) => self.override_edit(key, one, living, (files, written)),
            };
            let waits = done.map(|edit| edits.push(edit)).err().filter(|_| living.is_some());
            if let (Some(_), Entry::Override(one)) = (&waits, what) {
                // Its version before may have fitted.
                edits.push(removal(one));
            }
            let mut waiting = self.waiting.lock();
            match waits {
                Some(mistakes) => drop(waiting.insert(Arc::clone(key), mistakes.join("; "))),
                None => drop(waiting.remove(key)),
            }
        }
        Some(edits)
    }

    fn override_edit(
        &self,
        key: &Arc<str>,
        one: &ControlOverride,
        living: Option<&Arc<LiveEntry>>,
        (files, written): (&Rules, &WrittenStrategies),
    ) -> Result<RuleEdit, Vec<String>> {
        let mut parsed = self.parsed.lock();
        parsed.remove(key);
        let Some(entry) = living else { return Ok(removal(one)) };
        let read = ParsedOverride::read(entry.version, one, files, written)?;
        let edit = RuleEdit::SetOverride(Box::new(read.applied(one)));
        parsed.insert(Arc::clone(key), read);
        Ok(edit)
    }
}

fn removal(one: &ControlOverride) -> RuleEdit {
    RuleEdit::RemoveOverride {
        strategy: (&*one.strategy).into(),
        consumer: (&*one.consumer).into(),
        resource: (&*one.resource).into(),
    }
}

impl ControlOverlay {
    /// The rules in force.
    pub(super) fn over(&self, files: &Rules, written: &WrittenStrategies) -> Rules {
        let (mut changes, mut waiting) = (RuleChanges::default(), HashMap::new());
        changes.generations = HashMap::clone(&self.generations);
        let mut known = std::mem::take(&mut *self.shared.parsed.lock());
        let mut parsed = HashMap::with_capacity(known.len());
        for entry in self.entries.values().filter(|entry| entry.lives(self.now)) {
            let Some(what) = &entry.message.entry else { continue };
            let done = match what {
                Entry::Override(one) => {
                    let same = known.remove(&entry.key).filter(|same| same.is_of(entry, files));
                    let read =
                        same.map_or_else(|| ParsedOverride::read(entry.version, one, files, written), Ok);
                    read.map(|read| {
                        changes.overrides.push(read.applied(one));
                        parsed.insert(entry.key.clone(), read);
                    })
                }
                Entry::Access(one) => access(one, files).map(|entry| changes.access.push(entry)),
                Entry::Strategy(one) => {
                    strategy(one, files, written).map(|strategy| changes.strategies.push(strategy))
                }
            };
            if let Err(mistakes) = done {
                waiting.insert(entry.key.clone(), mistakes.join("; "));
            }
        }
        *self.shared.parsed.lock() = parsed;
        *self.shared.waiting.lock() = waiting;
        files.amended(changes)
    }
}

impl ParsedOverride {
    fn read(
        version: ControlPosition,
        one: &ControlOverride,
        files: &Rules,
        written: &WrittenStrategies,
    ) -> Result<Self, Vec<String>> {
        let base = named(files, &one.strategy)?;
        let strategy = written.overridden(base, &numbers(&one.limits))?;
        Ok(Self { version, base: base.id(), strategy })
    }

    /// True if it was read from this version of the entry and of the files' strategy.
    fn is_of(&self, entry: &LiveEntry, files: &Rules) -> bool {
        self.version == entry.version
            && named(files, self.strategy.name()).is_ok_and(|base| base.id() == self.base)
    }

    fn applied(&self, one: &ControlOverride) -> Override {
        Override {
            consumer: one.consumer.clone(),
            resource: one.resource.clone(),
            strategy: self.strategy.clone(),
        }
    }
}

/// Reads an entry against the files. Returns every mistake.
pub(super) fn check(entry: &Entry, files: &Rules, written: &WrittenStrategies) -> Result<(), Vec<String>> {
    match entry {
        Entry::Override(one) => ParsedOverride::read(ControlPosition::NONE, one, files, written).map(drop),
        Entry::Access(one) => access(one, files).map(drop),
        Entry::Strategy(one) => strategy(one, files, written).map(drop),
    }
}

fn access(one: &ControlAccess, files: &Rules) -> Result<AccessEntry, Vec<String>> {
    let strategy = (!one.strategy.is_empty()).then_some(&*one.strategy);
    if let Some(name) = strategy {
        named(files, name)?;
    }
    let listed =
        listed(one).ok_or_else(|| vec![format!("list is {}: it must be 1 (DENY) or 2 (ALLOW)", one.list)])?;
    Ok(AccessEntry { strategy: strategy.map(Into::into), listed, consumer: one.consumer.clone() })
}

fn strategy(
    one: &ControlStrategy,
    files: &Rules,
    written: &WrittenStrategies,
) -> Result<Strategy, Vec<String>> {
    named(files, &one.strategy)?;
    written.strategy(&one.strategy, &numbers(&one.limits))
}

/// The strategy of this name.
fn named<'r>(files: &'r Rules, name: &str) -> Result<&'r Arc<Strategy>, Vec<String>> {
    let found = files.resolve("", name);
    found.map(|resolved| resolved.strategy).map_err(|unknown| vec![unknown.to_string()])
}

fn numbers(limits: &HashMap<String, String>) -> LimitNumbers {
    limits.iter().map(|(name, text)| (name.clone(), text.clone())).collect()
}
