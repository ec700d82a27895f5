//! A node's copy of the records of a store.
//!
//! A node never forgets a record that the store acknowledged because the store has lost it: it sends such records back.
//! Until the store has shown that it has them, the mirror is *unsettled*, and reads everything again. So a merge that
//! fails, or a node that ends in the middle of it, needs no special care.

use std::collections::{BTreeMap, BTreeSet};

use super::ENDED_KEPT;
use super::encoding::fault;
use super::record::{ControlPosition, ControlRecord};

/// Records of a store, as a node knows them.
#[derive(Debug, Clone, Default)]
pub struct ControlMirror {
    records: BTreeMap<Box<str>, ControlRecord>,
    /// The last change of the store up to which it knows all.
    position: ControlPosition,
    settled: MirrorSettled,
    /// Changes that the store acknowledged, and has not shown yet.
    learned: BTreeMap<Box<str>, ControlPosition>,
    greatest: u64,
    /// The end and the key of each record that ends, so that old ones are found without a search.
    ends: BTreeSet<(u64, Box<str>)>,
    /// Keys of records that were taken over since they were last asked for.
    touched: BTreeSet<Box<str>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum MirrorSettled {
    /// The position is the store's, as far as it is known.
    #[default]
    Yes,
    /// The store may lack records. Nothing was reported yet.
    No,
    /// The store lacks records, which was reported.
    Reported,
}

/// Result of a reconciliation after everything was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlReconciled {
    /// Records that the store lacks, to be merged into it.
    pub to_send: Vec<ControlRecord>,
    /// The changes that the store has lost, if it has. It is told once for each loss.
    pub lost: Option<ControlLoss>,
    /// True if a record of the mirror changed.
    pub changed: bool,
}

/// A range of versions of which the store has lost some. What a node still has of them is sent back; the rest is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlLoss {
    /// The last version before the loss.
    pub from: u64,
    /// The last version that the node knew.
    pub to: u64,
}

impl ControlMirror {
    /// The mirror with these records, such as those of a cache file. It reads everything first: some of these records may
    /// be from acknowledged puts that no poll had shown yet.
    #[must_use]
    pub fn restore(records: impl IntoIterator<Item = ControlRecord>, position: ControlPosition) -> Self {
        let mut mirror = Self { position, settled: MirrorSettled::No, ..Self::default() };
        records.into_iter().for_each(|record| {
            mirror.take(record);
        });
        mirror
    }

    /// The position to tell the store.
    #[must_use]
    pub fn position(&self) -> ControlPosition {
        if self.settled == MirrorSettled::Yes { self.position } else { ControlPosition::UNSETTLED }
    }

    /// The last position that it had in common with a store; to be kept in a cache file.
    #[must_use]
    pub fn last_position(&self) -> ControlPosition {
        self.position
    }

    /// The greatest version that it knows.
    #[must_use]
    pub fn greatest_version(&self) -> u64 {
        self.greatest.max(self.position.version)
    }

    /// All records, in the order of their keys.
    pub fn records(&self) -> impl Iterator<Item = &ControlRecord> {
        self.records.values()
    }

    /// Keys of records that changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<Box<str>> {
        std::mem::take(&mut self.touched)
    }

    /// The record of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ControlRecord> {
        self.records.get(key)
    }

    /// Takes over what the store wrote since [`ControlMirror::position`]. Returns whether a record changed.
    pub fn apply(
        &mut self,
        records: impl IntoIterator<Item = ControlRecord>,
        position: ControlPosition,
    ) -> bool {
        let (mut changed, mut any) = (false, false);
        for record in records {
            any = true;
            if self.learned.get(&record.key).is_some_and(|learned| *learned <= record.position()) {
                self.learned.remove(&record.key);
            }
            changed |= self.take(record);
        }
        self.position = position;
        // The store has nothing more to show, so it has lost what is still missing.
        if !any && !self.learned.is_empty() {
            self.unsettle();
        }
        changed
    }

    /// Takes over what an acknowledged put wrote, before the store shows it. Returns whether a record changed.
    pub fn take_acknowledged(&mut self, records: &[ControlRecord]) -> bool {
        let mut changed = false;
        for record in records {
            if self.take(record.clone()) {
                self.learned.insert(record.key.clone(), record.position());
                changed = true;
            }
        }
        changed
    }

    /// Compares with all records of a store, which does not know the position of this mirror. `now` is the store's time in
    /// µs. `position` is that of the store, the same before and after the records were read. If it was not the same, it
    /// is [`ControlPosition::UNSETTLED`]: the mirror takes over what is newer, but cannot tell which changes it has seen,
    /// so that a loss of some of them would go unnoticed. It has to read all of it again.
    pub fn everything(
        &mut self,
        now: u64,
        records: impl IntoIterator<Item = ControlRecord>,
        position: ControlPosition,
    ) -> ControlReconciled {
        let (mut there, mut changed) = (BTreeMap::new(), false);
        for record in records {
            there.insert(record.key.clone(), record.position());
            changed |= self.take(record);
        }
        let is_lacking = |own: &&ControlRecord| match there.get(&own.key) {
            Some(there) => *there < own.position(),
            // No store adds it again.
            None => !own.is_old(now),
        };
        let to_send: Vec<ControlRecord> = self.records.values().filter(is_lacking).cloned().collect();
        let lost = self.loss(&to_send, position);
        self.learned.clear();
        if to_send.is_empty() && position != ControlPosition::UNSETTLED {
            self.settled = MirrorSettled::Yes;
            self.position = position;
        } else if lost.is_some() {
            self.settled = MirrorSettled::Reported;
        } else {
            self.unsettle();
        }
        ControlReconciled { to_send, lost, changed }
    }

    /// Drops records that ended long ago, and returns their keys. The time is the store's, in µs.
    pub fn drop_old(&mut self, now: u64) -> Vec<Box<str>> {
        let mut dropped = Vec::new();
        while let Some((ends, key)) = self.ends.pop_first() {
            if ends.saturating_add(ENDED_KEPT.0) > now {
                self.ends.insert((ends, key));
                break;
            }
            self.records.remove(&key);
            dropped.push(key);
        }
        dropped
    }

    /// A store that was only read too late is not behind, and has all that this mirror has.
    fn loss(&self, to_send: &[ControlRecord], store: ControlPosition) -> Option<ControlLoss> {
        let least = to_send.iter().map(|record| record.version).min();
        let to = self.greatest_version();
        let is_behind = store != ControlPosition::UNSETTLED && store.version < self.position.version;
        let from = is_behind.then_some(store.version);
        let from = match (from, least) {
            (Some(behind), Some(least)) => behind.min(least - 1),
            (Some(behind), None) => behind,
            (None, Some(least)) => least - 1,
            (None, None) => return None,
        };
        (self.settled != MirrorSettled::Reported).then_some(ControlLoss { from, to })
    }

    fn unsettle(&mut self) {
        if self.settled == MirrorSettled::Yes {
            self.settled = MirrorSettled::No;
        }
    }

    /// Takes over a record if it is newer than its own.
    fn take(&mut self, record: ControlRecord) -> bool {
        let own = self.records.get(&record.key);
        let takes = fault(&record).is_none() && own.is_none_or(|own| record.is_newer_than(own));
        if takes {
            self.greatest = self.greatest.max(record.version);
            if let Some(own) = own.filter(|own| own.expires_at > 0) {
                self.ends.remove(&(own.expires_at, own.key.clone()));
            }
            if record.expires_at > 0 {
                self.ends.insert((record.expires_at, record.key.clone()));
            }
            self.touched.insert(record.key.clone());
            self.records.insert(record.key.clone(), record);
        }
        takes
    }
}

#[cfg(test)]
mod tests;
