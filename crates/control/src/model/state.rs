//! The records of a store. On the memory store it is the store; on Redis the scripts of `lua/control/` are its twin.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::changes::{ChangesSince, since};
use super::encoding::{HEADER_BYTES, fault};
use super::put::{ControlPut, ControlRefusal, RefusedPut, check_puts};
use super::record::{ControlPosition, ControlRecord};
use super::{
    ENDED_KEPT, MAX_CONTROL_ENTRIES, MAX_CONTROL_RECORDS, MAX_CONTROL_VERSION, MAX_DROPPED,
    MAX_MERGED_RECORDS, changes_kept,
};

/// State of a store: all records, and the last changes.
#[derive(Debug, Clone, Default)]
pub struct ControlState {
    records: BTreeMap<Box<str>, ControlRecord>,
    /// The end and the key of each entry, so that those in force are counted and old ones found without a search.
    ends: BTreeSet<(u64, Box<str>)>,
    ended: EndedEntries,
    position: ControlPosition,
    changes: VecDeque<(ControlPosition, Vec<ControlRecord>)>,
}

/// Number of entries that have ended until a time.
#[derive(Debug, Clone, Copy, Default)]
struct EndedEntries {
    until: u64,
    count: usize,
}

/// Records that a put will write.
#[derive(Debug, Clone)]
pub struct PlannedPut {
    /// The records: of each change the entry, and the generation if it has one.
    pub records: Vec<ControlRecord>,
    /// The position of the change; `None` if it was made before under the same id.
    position: Option<ControlPosition>,
}

impl PlannedPut {
    /// The position of the change; `None` if it was made before under the same id.
    #[must_use]
    pub fn position(&self) -> Option<ControlPosition> {
        self.position
    }
}

/// Changes of records.
pub type ControlChanges = ChangesSince<ControlRecord>;

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
        let written = self.put_many(now, known, std::slice::from_ref(&put));
        written.map_err(|refused| refused.refusal)
    }

    /// Makes several changes as one, all or none of them. They have one id.
    pub fn put_many(
        &mut self,
        now: u64,
        known: u64,
        puts: &[ControlPut],
    ) -> Result<Vec<ControlRecord>, RefusedPut> {
        let planned = self.plan(now, known, puts)?;
        let written = planned.records.clone();
        self.make(planned);
        Ok(written)
    }

    /// Returns the records that [`ControlState::put_many`] would write. [`ControlState::make`] writes them.
    pub fn plan(&mut self, now: u64, known: u64, puts: &[ControlPut]) -> Result<PlannedPut, RefusedPut> {
        check_puts(puts)?;
        self.drop_some(now, MAX_DROPPED);
        if let Some(known) = self.made_before(puts) {
            return Ok(PlannedPut { records: known, position: None });
        }
        let (mut new, mut added) = (0, 0);
        let lasting = self.lasting(now);
        for (place, put) in puts.iter().enumerate() {
            self.admit(now, put, (lasting, &mut new, &mut added))
                .map_err(|refusal| RefusedPut::new(place, refusal))?;
        }
        let (version, change) = (self.next(now, known), puts.first().map_or(0, |put| put.change));
        let records = puts.iter().flat_map(|put| written_by(now, version, put)).collect();
        Ok(PlannedPut { records, position: Some(ControlPosition { version, change }) })
    }

    /// Writes what was planned. Nothing may have changed since.
    pub fn make(&mut self, planned: PlannedPut) {
        if let Some(position) = planned.position {
            self.commit(position, planned.records);
        }
    }

    /// Records of an earlier put under the same id.
    fn made_before(&self, puts: &[ControlPut]) -> Option<Vec<ControlRecord>> {
        let own = |put: &ControlPut| self.records.get(&put.key).filter(|entry| entry.change == put.change);
        own(puts.first()?)?;
        let each = puts.iter().filter_map(|put| Some((own(put)?, put.generation.as_deref())));
        let records = each.flat_map(|(entry, generation)| {
            std::iter::once(entry).chain(generation.and_then(|key| self.records.get(key)))
        });
        Some(records.cloned().collect())
    }

    /// Checks one change against the records. `new` entries and `added` records are those of the changes before it.
    fn admit(
        &self,
        now: u64,
        put: &ControlPut,
        (lasting, new, added): (usize, &mut usize, &mut usize),
    ) -> Result<(), ControlRefusal> {
        let current = self.records.get(&put.key).filter(|entry| entry.is_live(now));
        let is_new = current.is_none();
        let current = current.map(ControlRecord::position).unwrap_or_default();
        if put.expect.is_some_and(|expected| expected != current) {
            return Err(ControlRefusal::Stale { current });
        }
        if is_new && put.body.is_none() {
            return Err(ControlRefusal::Missing);
        }
        if is_new && lasting + *new >= MAX_CONTROL_ENTRIES {
            return Err(ControlRefusal::Full { most: MAX_CONTROL_ENTRIES });
        }
        let absent = |key: &str| usize::from(!self.records.contains_key(key));
        let adds = absent(&put.key) + put.generation.as_deref().map_or(0, absent);
        *new += usize::from(is_new);
        *added += adds;
        if adds > 0 && self.records.len() + *added > MAX_CONTROL_RECORDS {
            return Err(ControlRefusal::Full { most: MAX_CONTROL_RECORDS });
        }
        Ok(())
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

    /// Changes after a position.
    #[must_use]
    pub fn changes_since(&self, position: ControlPosition) -> ControlChanges {
        since(&self.changes, (position, self.position), size)
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
                    self.ended.count -= usize::from(ends <= self.ended.until);
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

    /// Number of entries that end later than now, even deletions from before the clock was set back. Entries that have
    /// ended are counted once, as time passes.
    fn lasting(&mut self, now: u64) -> usize {
        let of = |at: u64| (at.saturating_add(1), Box::default());
        if now < self.ended.until {
            self.ended = EndedEntries { until: now, count: self.ends.range(..of(now)).count() };
        } else if now > self.ended.until {
            self.ended.count += self.ends.range(of(self.ended.until)..of(now)).count();
            self.ended.until = now;
        }
        self.ends.len() - self.ended.count
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
        let kept = changes_kept(written.len());
        self.changes.push_back((position, written));
        while self.changes.len() > kept {
            self.changes.pop_front();
        }
    }

    fn write(&mut self, record: ControlRecord) {
        let (ends, key) = (record.ends(), record.key.clone());
        let replaced = self.records.insert(key.clone(), record);
        if let Some(before) = replaced.and_then(|replaced| replaced.ends()) {
            self.ends.remove(&(before, key.clone()));
            self.ended.count -= usize::from(before <= self.ended.until);
        }
        if let Some(ends) = ends {
            self.ends.insert((ends, key));
            self.ended.count += usize::from(ends <= self.ended.until);
        }
    }
}

/// The records of a change: the entry, and the generation.
fn written_by(now: u64, version: u64, put: &ControlPut) -> impl Iterator<Item = ControlRecord> {
    let expires_at = match (&put.body, put.expires_after) {
        (None, _) => now.clamp(1, MAX_CONTROL_VERSION),
        (Some(_), None) => 0,
        (Some(_), Some(after)) => now.saturating_add(after.0).clamp(1, MAX_CONTROL_VERSION),
    };
    let entry = ControlRecord {
        key: put.key.clone(),
        version,
        change: put.change,
        expires_at,
        deleted: put.body.is_none(),
        body: put.kept().into(),
    };
    let generation = put.generation.as_ref().map(|key| ControlRecord {
        key: key.clone(),
        expires_at: 0,
        deleted: false,
        body: Box::default(),
        ..entry.clone()
    });
    std::iter::once(entry).chain(generation)
}

/// The last version that there can be.
const MAX_VERSION: u64 = (1 << 53) - 1;

/// Bytes of a record in an answer.
fn size(record: &ControlRecord) -> usize {
    record.key.len() + HEADER_BYTES + record.body.len()
}

#[cfg(test)]
mod tests;
