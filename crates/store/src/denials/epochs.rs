//! Epochs: counters that show if anything may have changed since a denial.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use parking_lot::Mutex;

use super::DenialsShared;
use super::known::KnownQuestion;
use crate::{Decision, Verdicts};
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::key;
use weir_core::strategy::{Field, StrategyId};

thread_local! {
    /// Scratch buffer for the text that a tag is the hash of.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Number of epochs. Keys that collide may invalidate each other's entries; nothing else depends on it.
pub(super) const EPOCHS: usize = 4096;

/// Places for the last seen states, each for several sets of keys. If a set of keys was evicted, its next answer
/// invalidates its entries. A megabyte.
pub(super) const LAST_SEEN_PLACES: usize = 16_384;

/// Hashes of the states that the last answers for some sets of keys showed, by the hash of their fields; the newest first.
#[derive(Clone, Copy, Default)]
pub(super) struct LastSeenStates([(u64, u64); 3]);

/// A place, which is one cache line with its lock: each answer misses the cache for it.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct LastSeenPlace(pub(super) Mutex<LastSeenStates>);

impl LastSeenStates {
    /// True if the state of these keys differs from the last seen one. Records it.
    fn is_new(&mut self, keys: u64, state: u64) -> bool {
        let found = self.0.iter().position(|(of, _)| *of == keys);
        let is_new = found.and_then(|at| self.0.get(at)) != Some(&(keys, state));
        let last = found.unwrap_or(self.0.len() - 1);
        if let Some(older) = self.0.get_mut(..=last) {
            older.rotate_right(1);
        }
        if let Some(newest) = self.0.first_mut() {
            *newest = (keys, state);
        }
        is_new
    }
}

/// Epochs of a decision: the tag's, which refunds, debits and resets raise, and the keys', which charges raise. They
/// are the same one where other decisions share only some of its counters. Indexes into [`DenialsShared`].
#[derive(Clone, Copy)]
pub(super) struct Epochs {
    /// Index of the tag's epoch, and of its changes under way.
    tag: usize,
    keys: usize,
    /// Index of the last seen states of its keys.
    last_seen: usize,
    fields: u128,
}

impl Epochs {
    /// The key of the cache entry. The strategy's id is part of it, because an override, or the same strategy after a
    /// reload, has the same keys but other numbers. Ids are never reused.
    pub(super) fn question(&self, strategy: StrategyId, cost: u64) -> KnownQuestion {
        KnownQuestion { fields: self.fields, strategy, cost }
    }

    /// Both counters only grow, so their sum changes whenever either one does.
    #[inline]
    pub(super) fn sum(&self, shared: &DenialsShared) -> u64 {
        shared.epochs[self.tag].load(SeqCst).wrapping_add(shared.epochs[self.keys].load(SeqCst))
    }

    /// Raises the epoch of the keys if they have `changed`, or if an answer shows a state that no caller has seen yet:
    /// then a change was executed whose caller may not have its answer. So all cached denials of some keys are of one
    /// state, the last one that any caller has seen. Returns whether it has raised the epoch.
    pub(super) fn saw(&self, shared: &DenialsShared, answers: &Verdicts, changed: bool) -> bool {
        let Some(newest) = answers.decisions.len().checked_sub(1).and_then(|last| answers.get(last)) else {
            return false;
        };
        let state = Self::state(newest);
        let mut last_seen = shared.last_seen[self.last_seen].0.lock();
        // A forced debit may change only a wait, and a refund may undo a charge: the hash would show neither.
        let is_unsure = shared.under_way[self.tag].load(SeqCst) > 0;
        let is_raised = last_seen.is_new(self.fields as u64, state) || changed || is_unsure;
        if is_raised {
            shared.epochs[self.keys].fetch_add(1, SeqCst);
        }
        is_raised
    }

    /// Hash of the state of the keys. It does not depend on the time or on the cost.
    fn state((verdict, limits): (&Verdict, &[LimitVerdict])) -> u64 {
        let mix = |hash: u64, part: u64| (hash.rotate_left(29) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        limits.iter().fold(0, |hash, limit| {
            mix(mix(hash, limit.remaining), verdict.now.0.wrapping_add(limit.reset_after.0))
        })
    }

    /// Growth of the sum when the keys' epoch is raised.
    pub(super) fn step(&self) -> u64 {
        1 + u64::from(self.tag == self.keys)
    }
}

/// A change of state under way. It raises the epoch when it ends, before its caller gets the answer; also after an
/// error or if the caller has gone, because it may have been executed.
pub(super) struct StateChange {
    /// The worker's own.
    shared: Arc<DenialsShared>,
    raises: Option<usize>,
    /// Changes of a tag: index of the counter of changes under way.
    under_way: Option<usize>,
}

impl StateChange {
    pub(super) fn of_keys(shared: &Arc<DenialsShared>, Epochs { keys, .. }: Epochs) -> Self {
        Self { shared: Arc::clone(shared), raises: Some(keys), under_way: None }
    }

    /// A change of the tag, which is under way from now on.
    pub(super) fn of_tag(shared: &Arc<DenialsShared>, Epochs { tag, .. }: Epochs) -> Self {
        shared.under_way[tag].fetch_add(1, SeqCst);
        Self { shared: Arc::clone(shared), raises: Some(tag), under_way: Some(tag) }
    }

    /// Drops the change without raising an epoch: it is seen otherwise.
    pub(super) fn forget(mut self) {
        self.raises = None;
    }
}

impl Drop for StateChange {
    fn drop(&mut self) {
        if let Some(epoch) = self.raises {
            self.shared.epochs[epoch].fetch_add(1, SeqCst);
        }
        if let Some(tag) = self.under_way {
            self.shared.under_way[tag].fetch_sub(1, SeqCst);
        }
    }
}

impl DenialsShared {
    pub(super) fn epochs(&self, decision: &Decision<'_>) -> Epochs {
        let Decision { strategy, ref subject, .. } = *decision;
        let named = TEXT.with_borrow_mut(|text| {
            text.clear();
            key::write_tag(text, strategy, subject);
            self.secret.digest(text)
        });
        let tag = named as usize % EPOCHS;
        // A strategy and its overrides are one family: they share keys.
        let family = strategy.family() as u64;
        // Mostly the tag has all fields, so its hash identifies the keys too. Otherwise the fields are hashed
        // separately and the hash is inverted, so that no text has the same hash in both ways.
        let by_group = subject.group.is_some() && strategy.fields().has(Field::Resource);
        let is_whole = strategy.tag_is_whole() && !by_group;
        let fields = if is_whole { named } else { !self.secret.hash_fields(family, strategy, subject) };
        let of_keys = ((fields >> 64) as u64).wrapping_add(family) as usize % EPOCHS;
        let keys = if strategy.shares_counters() { tag } else { of_keys };
        Epochs { tag, keys, last_seen: (fields >> 32) as usize % LAST_SEEN_PLACES, fields }
    }
}
