//! The records of a store. On the memory store it is the store; on Redis the scripts of `lua/control/` are its twin.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::encoding::{HEADER_BYTES, fault};
use super::put::{ControlPut, ControlRefusal};
use super::record::{ControlPosition, ControlRecord};
use super::{
    ENDED_KEPT, MAX_CONTROL_CHANGES, MAX_CONTROL_ENTRIES, MAX_CONTROL_RECORDS, MAX_CONTROL_VERSION,
    MAX_DROPPED, MAX_MERGED_RECORDS, MAX_POLLED_BYTES, MAX_POLLED_CHANGES,
};

/// All records, and the last changes.
#[derive(Debug, Clone, Default)]
pub struct ControlState {
    records: BTreeMap<Box<str>, ControlRecord>,
    /// The end and the key of each entry, so that those in force are counted and old ones found without a search.
    ends: BTreeSet<(u64, Box<str>)>,
    position: ControlPosition,
    changes: VecDeque<(ControlPosition, Vec<ControlRecord>)>,
}

/// What a store answers to a node that tells its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlChanges {
    /// What was written since then, in order. It may be a part of it: `position` is that of the last change in it.
    Since {
        /// The records.
        records: Vec<ControlRecord>,
        /// The new position of the node.
        position: ControlPosition,
    },
    /// The store does not know the position: the node must read all records.
    Everything {
        /// The position of the store.
        position: ControlPosition,
    },
}

impl ControlState {
    /// The state with these records, such as those of a file.
    #[must_use]
    pub fn restore(records: impl IntoIterator<Item = ControlRecord>, position: ControlPosition) -> Self {
        let mut state = Self::default();
        for record in records {
            if state.takes(&record) {
                state.write(record);
            }
        }
        let greatest = state.records().map(ControlRecord::position).max();
        state.position = position.max(greatest.unwrap_or_default());
        state
    }

    /// All records, in the order of their keys.
    pub fn records(&self) -> impl Iterator<Item = &ControlRecord> {
        self.records.values()
    }

    /// The last change.
    #[must_use]
    pub fn position(&self) -> ControlPosition {
        self.position
    }

    /// Makes a change at `now`, the store's time in µs. Returns what was written: the entry, and the generation.
    pub fn put(&mut self, now: u64, put: ControlPut) -> Result<Vec<ControlRecord>, ControlRefusal> {
        self.put_above(now, 0, put)
    }

    /// Like [`ControlState::put`]. The change gets a greater version than `known`, the greatest that the writer knows,
    /// so that it replaces what the writer has seen even if the store has lost that, or its clock is behind.
    pub fn put_above(
        &mut self,
        now: u64,
        known: u64,
        put: ControlPut,
    ) -> Result<Vec<ControlRecord>, ControlRefusal> {
        put.check()?;
        self.drop_some(now, MAX_DROPPED);
        let generation = put.generation.as_deref();
        if let Some(entry) = self.records.get(&put.key)
            && entry.change == put.change
        {
            let generation = generation.and_then(|key| self.records.get(key));
            return Ok([entry].into_iter().chain(generation).cloned().collect());
        }
        let current = self.records.get(&put.key).filter(|entry| entry.is_live(now));
        let is_new = current.is_none();
        let current = current.map(ControlRecord::position).unwrap_or_default();
        if put.expect.is_some_and(|expected| expected != current) {
            return Err(ControlRefusal::Stale { current });
        }
        if is_new && put.body.is_none() {
            return Err(ControlRefusal::Missing);
        }
        if is_new && self.is_full(now) {
            return Err(ControlRefusal::Full { most: MAX_CONTROL_ENTRIES });
        }
        let absent = |key: &str| usize::from(!self.records.contains_key(key));
        let added = absent(&put.key) + generation.map_or(0, absent);
        if added > 0 && self.records.len() + added > MAX_CONTROL_RECORDS {
            return Err(ControlRefusal::Full { most: MAX_CONTROL_RECORDS });
        }
        let version = self.next(now, known);
        let expires_at = match (&put.body, put.expires_after) {
            (None, _) => now.clamp(1, MAX_CONTROL_VERSION),
            (Some(_), None) => 0,
            (Some(_), Some(after)) => now.saturating_add(after.0).clamp(1, MAX_CONTROL_VERSION),
        };
        let entry = ControlRecord {
            key: put.key,
            version,
            change: put.change,
            expires_at,
            deleted: put.body.is_none(),
            body: put.body.unwrap_or(put.tombstone),
        };
        let generation = put.generation.map(|key| ControlRecord {
            key,
            expires_at: 0,
            deleted: false,
            body: Box::default(),
            ..entry.clone()
        });
        let written: Vec<ControlRecord> = std::iter::once(entry).chain(generation).collect();
        self.commit(ControlPosition { version, change: put.change }, written.clone());
        Ok(written)
    }

    /// Takes over records that are newer than its own. Returns how many these were. Records that ended long ago replace
    /// others, but are not added. The bound of entries does not hold here, so that no entry is refused after a loss.
    pub fn merge(&mut self, now: u64, change: u64, records: &[ControlRecord]) -> usize {
        let mut taken = Vec::new();
        for record in records {
            let is_known = self.records.contains_key(&record.key);
            let may_be_added = self.records.len() < MAX_MERGED_RECORDS && !record.is_old(now);
            if self.takes(record) && (is_known || may_be_added) {
                self.write(record.clone());
                taken.push(record.clone());
            }
        }
        let Some(greatest) = taken.iter().map(|record| record.version).max() else { return 0 };
        let count = taken.len();
        let version = self.next(now, greatest);
        self.commit(ControlPosition { version, change }, taken);
        count
    }

    /// What was written after this position.
    #[must_use]
    pub fn changes_since(&self, position: ControlPosition) -> ControlChanges {
        let everything = ControlChanges::Everything { position: self.position };
        let first = if position == self.position {
            self.changes.len()
        } else {
            match self.changes.binary_search_by_key(&position, |(position, _)| *position) {
                Ok(place) => place + 1,
                Err(_) => return everything,
            }
        };
        let (mut records, mut last, mut bytes) = (Vec::new(), position, 0);
        for (position, written) in self.changes.range(first..).take(MAX_POLLED_CHANGES) {
            if bytes >= MAX_POLLED_BYTES {
                break;
            }
            bytes += written.iter().map(size).sum::<usize>();
            records.extend(written.iter().cloned());
            last = *position;
        }
        ControlChanges::Since { records, position: last }
    }

    /// Drops records that ended long ago.
    pub fn drop_old(&mut self, now: u64) {
        self.drop_some(now, usize::MAX);
    }

    fn drop_some(&mut self, now: u64, most: usize) {
        let Some(before) = now.checked_sub(ENDED_KEPT.0) else { return };
        for _ in 0..most {
            match self.ends.pop_first() {
                Some((ends, key)) if ends <= before => {
                    self.records.remove(&key);
                }
                Some(other) => {
                    self.ends.insert(other);
                    return;
                }
                None => return,
            }
        }
    }

    /// True if there are as many entries in force as there may be. What ends later than now counts, even a deletion
    /// from before the clock was set back.
    fn is_full(&self, now: u64) -> bool {
        let lasting = || self.ends.range((now.saturating_add(1), Box::default())..);
        self.ends.len() >= MAX_CONTROL_ENTRIES
            && lasting().take(MAX_CONTROL_ENTRIES).count() == MAX_CONTROL_ENTRIES
    }

    fn next(&self, now: u64, known: u64) -> u64 {
        (self.position.version + 1).max(now).max(known + 1).min(MAX_VERSION)
    }

    fn takes(&self, record: &ControlRecord) -> bool {
        let own = self.records.get(&record.key);
        fault(record).is_none() && own.is_none_or(|own| record.is_newer_than(own))
    }

    fn commit(&mut self, position: ControlPosition, written: Vec<ControlRecord>) {
        for record in &written {
            self.write(record.clone());
        }
        self.position = position;
        self.changes.push_back((position, written));
        if self.changes.len() > MAX_CONTROL_CHANGES {
            self.changes.pop_front();
        }
    }

    fn write(&mut self, record: ControlRecord) {
        if let Some(ends) = record.ends() {
            self.ends.insert((ends, record.key.clone()));
        }
        let (ends, key) = (record.ends(), record.key.clone());
        let replaced = self.records.insert(key.clone(), record);
        if let Some(before) = replaced.and_then(|replaced| replaced.ends())
            && Some(before) != ends
        {
            self.ends.remove(&(before, key));
        }
    }
}

/// The last version that there can be.
const MAX_VERSION: u64 = (1 << 53) - 1;

/// Bytes of a record in an answer.
fn size(record: &ControlRecord) -> usize {
    record.key.len() + HEADER_BYTES + record.body.len()
}

#[cfg(test)]
mod tests;
