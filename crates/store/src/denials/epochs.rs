//! Counters that show whether anything may have changed since a denial.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::DenialsShared;
use super::known::KnownQuestion;
use crate::{Decision, Verdicts};
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::key;
use weir_core::strategy::{Field, StrategyId};

thread_local! {
    /// What a tag is the hash of is built here, hashed, and forgotten.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Those that share an epoch end one another's denials now and then, and nothing else.
pub(super) const EPOCHS: usize = 4096;

/// Places for the states that were seen last, each for several sets of keys. If a set of keys has lost its place, the next
/// answer ends its entries. About half a megabyte.
pub(super) const LAST_SEEN_PLACES: usize = 8192;

/// Hashes of the states that the last answers for some sets of keys showed, by the hash of their fields; the newest first.
#[derive(Clone, Copy, Default)]
pub(super) struct LastSeenStates([(u64, u64); 4]);

impl LastSeenStates {
    /// Whether the state of these keys is another one than was seen last.
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

/// What may change under a decision: its tag, which refunds and the like raise, and its keys, which charges
/// do. Where other decisions share some of its counters only, both are the tag's. Numbers of places in
/// [`DenialsShared`].
#[derive(Clone, Copy)]
pub(super) struct Epochs {
    /// Of the tag's epoch, and of its changes under way.
    tag: usize,
    /// Of the keys' epoch.
    keys: usize,
    /// Of the states that were seen last of its keys.
    last_seen: usize,
    /// The hash of the fields of its keys.
    fields: u128,
}

impl Epochs {
    /// An override has its strategy's keys, but other numbers; and so has the same strategy of a configuration
    /// that has changed. Each has a number of its own, which is never used again.
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
        let mut last_seen = shared.last_seen[self.last_seen].lock();
        // A forced debit may change only a wait, and a refund may undo a charge: the hash would show neither.
        let is_unsure = shared.under_way[self.tag].load(SeqCst) > 0;
        let is_raised = last_seen.is_new(self.fields as u64, state) || changed || is_unsure;
        if is_raised {
            shared.epochs[self.keys].fetch_add(1, SeqCst);
        }
        is_raised
    }

    /// The same number for the same state of the same keys, whenever it is seen and whatever was asked for.
    fn state((verdict, limits): (&Verdict, &[LimitVerdict])) -> u64 {
        let mix = |hash: u64, part: u64| (hash.rotate_left(29) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        limits.iter().fold(0, |hash, limit| {
            mix(mix(hash, limit.remaining), verdict.now.0.wrapping_add(limit.reset_after.0))
        })
    }

    /// By how much the sum grows when the epoch of the keys is raised.
    pub(super) fn step(&self) -> u64 {
        1 + u64::from(self.tag == self.keys)
    }
}

/// Something that may change a state. When it has ended, and before its caller gets the answer, it raises the epoch;
/// also after an error, and for a caller that has gone, because it may have been executed.
pub(super) struct StateChange {
    /// The worker's own.
    shared: Arc<DenialsShared>,
    /// Which epoch is raised, if any is.
    raises: Option<usize>,
    /// Of a change of a tag, where it is counted until the epoch has been raised.
    under_way: Option<usize>,
}

impl StateChange {
    /// A change of the keys.
    pub(super) fn of_keys(shared: &Arc<DenialsShared>, Epochs { keys, .. }: Epochs) -> Self {
        Self { shared: Arc::clone(shared), raises: Some(keys), under_way: None }
    }

    /// A change of the tag, which is under way from now on.
    pub(super) fn of_tag(shared: &Arc<DenialsShared>, Epochs { tag, .. }: Epochs) -> Self {
        shared.under_way[tag].fetch_add(1, SeqCst);
        Self { shared: Arc::clone(shared), raises: Some(tag), under_way: Some(tag) }
    }

    /// Nothing has changed that is not seen otherwise.
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
        // Of a strategy and its overrides, which have keys in common.
        let family = strategy.family() as u64;
        // Mostly the tag is made of all fields, and its hash tells them apart too. The hashes of others are
        // turned over: no text has the same hash in both ways.
        let by_group = subject.group.is_some() && strategy.fields().has(Field::Resource);
        let is_whole = strategy.tag_is_whole() && !by_group;
        let fields = if is_whole { named } else { !self.secret.hash_fields(family, strategy, subject) };
        let of_keys = ((fields >> 64) as u64).wrapping_add(family) as usize % EPOCHS;
        let keys = if strategy.shares_counters() { tag } else { of_keys };
        Epochs { tag, keys, last_seen: (fields >> 32) as usize % LAST_SEEN_PLACES, fields }
    }
}
