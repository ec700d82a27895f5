//! The counters that this node keeps: a table of fixed parts, each under a lock of its own, which all workers share.
//!
//! A key stays until its window has ended (R3), and no others are taken in while the table is full.

mod entry;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use weir_core::approximate::CountOp;
use weir_core::key::{self, KeySecret};

pub(super) use self::entry::KeyEntry;
use super::moment::NodeMoment;
use super::places::PlaceSet;
use super::verdict::CountVerdict;
use crate::Decision;

/// The most keys that a node counts on its own.
pub const MAX_KEYS: usize = 100_000;

/// Parts of the table; many more than workers.
const PARTS: usize = 128;

thread_local! {
    /// Scratch buffer for the text of a key, which is hashed.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Entries of keys, by their digests.
pub(super) struct CountTable {
    parts: Box<[Mutex<TablePart>]>,
    keys: AtomicUsize,
    secret: KeySecret,
    pub(super) central: AtomicU64,
}

struct TablePart {
    entries: HashMap<u128, KeyEntry, foldhash::fast::RandomState>,
    /// Decisions that the node made.
    decided: u64,
}

impl CountTable {
    pub(super) fn new() -> Self {
        let part = |_| Mutex::new(TablePart { entries: HashMap::default(), decided: 0 });
        Self {
            parts: (0..PARTS).map(part).collect(),
            keys: AtomicUsize::new(0),
            secret: KeySecret::random(),
            central: AtomicU64::new(0),
        }
    }

    /// Decides where the node can: on a key of the table.
    pub(super) fn decide(
        &self,
        set: &PlaceSet,
        decision: &Decision<'_>,
        (op, cost): (CountOp, u64),
        moment: &NodeMoment<'_>,
    ) -> Option<CountVerdict> {
        let digest = self.digest(set, decision);
        let limit = limit_of(decision);
        let mut part = self.part(digest).lock();
        let TablePart { entries, decided } = &mut *part;
        let entry = entries.get_mut(&digest).filter(|entry| !entry.line.is_in_flight)?;
        let window = moment.window(set, entry.server)?;
        let found = entry.decide(&window, (op, cost, limit), digest)?;
        *decided += 1;
        Some(found)
    }

    /// Removes keys: those whose window has ended, when many are there; otherwise those that were not used in the window
    /// after it.
    pub(super) fn sweep(&self, moment: &NodeMoment<'_>) {
        let kept = if self.len() > MAX_KEYS / 2 { 0 } else { 1 };
        self.retain(|entry| {
            let last = entry.count.window().saturating_add(kept);
            entry.line.is_in_flight || !moment.is_past(last, &entry.set, entry.server)
        });
    }

    pub(super) fn with<T>(&self, digest: u128, does: impl FnOnce(&mut KeyEntry) -> T) -> Option<T> {
        self.part(digest).lock().entries.get_mut(&digest).map(does)
    }

    /// Calls `does` with the entry of a key; if there is none, and there is room, `make` makes it.
    pub(super) fn with_new<T>(
        &self,
        digest: u128,
        make: impl FnOnce() -> Option<KeyEntry>,
        does: impl FnOnce(&mut KeyEntry) -> T,
    ) -> Option<T> {
        let mut part = self.part(digest).lock();
        if let Some(entry) = part.entries.get_mut(&digest) {
            return Some(does(entry));
        }
        // Counted first, because other workers add keys to other parts meanwhile.
        let is_full = self.keys.fetch_add(1, Relaxed) >= MAX_KEYS;
        let Some(entry) = (if is_full { None } else { make() }) else {
            self.keys.fetch_sub(1, Relaxed);
            return None;
        };
        Some(does(part.entries.entry(digest).or_insert(entry)))
    }

    /// Counts decisions that the node made.
    pub(super) fn count_decided(&self, digest: u128, count: u64) {
        self.part(digest).lock().decided += count;
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&KeyEntry) -> bool) {
        for part in &self.parts {
            let mut part = part.lock();
            let before = part.entries.len();
            part.entries.retain(|_, entry| is_kept(entry));
            self.keys.fetch_sub(before - part.entries.len(), Relaxed);
        }
    }

    /// The digests of the entries that have an `order`, in this order. The order of the table
    /// differs between processes, and two runs of a simulation must send the same.
    pub(super) fn digests<O: Ord>(&self, order: impl Fn(&KeyEntry) -> Option<O>) -> Vec<u128> {
        let mut found = Vec::new();
        for part in &self.parts {
            let part = part.lock();
            found.extend(part.entries.iter().filter_map(|(digest, entry)| Some((order(entry)?, *digest))));
        }
        found.sort_unstable();
        found.into_iter().map(|(_, digest)| digest).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// Decisions that the node made.
    pub(super) fn decided(&self) -> u64 {
        self.parts.iter().map(|part| part.lock().decided).sum()
    }

    pub(super) fn digest(&self, set: &PlaceSet, decision: &Decision<'_>) -> u128 {
        SCRATCH.with_borrow_mut(|text| {
            text.clear();
            text.extend_from_slice(&set.number.to_le_bytes());
            key::write_identity(text, decision.strategy, 0, &decision.subject);
            self.secret.digest(text)
        })
    }

    fn part(&self, digest: u128) -> &Mutex<TablePart> {
        &self.parts[(digest >> 40) as usize % PARTS]
    }
}

pub(super) fn limit_of(decision: &Decision<'_>) -> u64 {
    decision.strategy.algorithms().first().map_or(0, |limit| limit.limit())
}
