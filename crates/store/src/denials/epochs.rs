//! Counters that show whether anything may have changed since a denial.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;

use super::DenialsShared;
use super::known::Question;
use crate::{Decision, Verdicts};
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::key;
use weir_core::strategy::Field;

thread_local! {
    /// What a tag is the hash of is built here, hashed, and forgotten.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Those that share an epoch end one another's denials now and then, and nothing else.
pub(super) const EPOCHS: usize = 4096;

/// Places for the states that were seen last, each of several sets of keys: of one that has lost its own, the next answer ends
/// the denials that are known. About half a megabyte.
pub(super) const TOLD: usize = 8192;

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
/// do. Where other decisions share some of its counters only, both are the tag's.
pub(super) struct Epochs<'a> {
    pub(super) tag: &'a AtomicU64,
    pub(super) keys: &'a AtomicU64,
    /// How many changes of the tag are under way.
    under_way: &'a AtomicU64,
    /// The states that were seen last of its keys.
    told: &'a Mutex<LastSeenStates>,
    /// The hash of the fields of its keys.
    fields: u128,
}

impl Epochs<'_> {
    /// An override has its strategy's keys, but other numbers; and so has the same strategy of a configuration
    /// that has changed. Each has a number of its own, which is never used again.
    pub(super) fn question(&self, decision: &Decision<'_>, cost: u64) -> Question {
        Question { fields: self.fields, strategy: decision.strategy.id(), cost }
    }

    /// Both counters only grow, so their sum changes whenever either one does.
    pub(super) fn sum(&self) -> u64 {
        self.tag.load(SeqCst).wrapping_add(self.keys.load(SeqCst))
    }

    /// Raises the epoch of the keys if they are `changed`, or if the store tells of a state that nobody has been told
    /// of: somebody's change has been executed, and its caller may not have heard of it. So all denials that are known
    /// of some keys are of one state, the last one that anybody was told of. Returns whether it has raised it.
    pub(super) fn told(&self, answers: &Verdicts, changed: bool) -> bool {
        let Some(newest) = answers.decisions.len().checked_sub(1).and_then(|last| answers.get(last)) else {
            return false;
        };
        let state = Self::state(newest);
        let mut told = self.told.lock();
        // What is forced may change no more than a wait, and what is given back may undo a charge.
        let is_unsure = self.under_way.load(SeqCst) > 0;
        let is_raised = told.is_new(self.fields as u64, state) || changed || is_unsure;
        if is_raised {
            self.keys.fetch_add(1, SeqCst);
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
        1 + u64::from(std::ptr::eq(self.tag, self.keys))
    }
}

/// Something that may change a state, and raises its epoch when it has ended, before its caller hears of it.
/// However it ends: after an error it may have been executed, and after a caller that has gone as well.
pub(super) struct Changes<'a>(pub(super) Option<&'a AtomicU64>);

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        if let Some(epoch) = self.0 {
            epoch.fetch_add(1, SeqCst);
        }
    }
}

/// A change of a tag, from before the store is asked until its epoch has been raised.
pub(super) struct UnderWay<'a>(Option<&'a AtomicU64>);

impl<'a> UnderWay<'a> {
    pub(super) fn of(epochs: &Epochs<'a>, changes: bool) -> Self {
        let count = changes.then_some(epochs.under_way);
        if let Some(count) = count {
            count.fetch_add(1, SeqCst);
        }
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, SeqCst);
        }
    }
}

impl DenialsShared {
    pub(super) fn epochs(&self, decision: &Decision<'_>) -> Epochs<'_> {
        let Decision { strategy, ref subject, .. } = *decision;
        let named = TEXT.with_borrow_mut(|text| {
            text.clear();
            key::write_tag(text, strategy, subject);
            self.secret.digest(text)
        });
        let epoch = |hash: u64| &self.epochs[hash as usize % EPOCHS];
        let tag = epoch(named as u64);
        // Of a strategy and its overrides, which have keys in common.
        let family = strategy.family() as u64;
        // Mostly the tag is made of all fields, and its hash tells them apart too. The hashes of others are
        // turned over: no text has the same hash in both ways.
        let by_group = subject.group.is_some() && strategy.fields().has(Field::Resource);
        let is_whole = strategy.tag_is_whole() && !by_group;
        let fields = if is_whole { named } else { !self.secret.hash_fields(family, strategy, subject) };
        let of_keys = ((fields >> 64) as u64).wrapping_add(family);
        let keys = if strategy.shares_counters() { tag } else { epoch(of_keys) };
        let told = &self.told[(fields >> 32) as usize % TOLD];
        let under_way = &self.under_way[named as usize % EPOCHS];
        Epochs { tag, keys, under_way, told, fields }
    }
}
