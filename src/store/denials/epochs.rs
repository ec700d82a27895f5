//! Counters that tell whether anything may have changed since a denial.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::DenialsShared;
use super::known::Question;
use crate::key;
use crate::store::Decision;
use crate::strategy::Field;

thread_local! {
    /// What a tag is the hash of is built here, hashed, and forgotten.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Those that share an epoch end one another's denials now and then, and nothing else.
pub(super) const EPOCHS: usize = 4096;

/// What may change under a decision: its tag, which refunds and the like raise, and its keys, which charges
/// do. Where other decisions share some of its counters only, both are the tag's.
pub(super) struct Epochs<'a> {
    pub(super) tag: &'a AtomicU64,
    pub(super) keys: &'a AtomicU64,
    /// The hash of the fields of its keys.
    fields: u128,
}

impl Epochs<'_> {
    /// An override has its strategy's keys, but other numbers; and so has the same strategy of a configuration
    /// that has changed. Each has a number of its own, which is never used again.
    pub(super) fn question(&self, decision: &Decision<'_>, cost: u64) -> Question {
        Question { fields: self.fields, strategy: decision.strategy.id(), cost }
    }

    /// Neither of them is ever lowered, so that the sum tells whether one has been raised.
    pub(super) fn sum(&self) -> u64 {
        self.tag.load(SeqCst).wrapping_add(self.keys.load(SeqCst))
    }

    /// By how much a charge raises the sum.
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
        Epochs { tag, keys, fields }
    }
}
