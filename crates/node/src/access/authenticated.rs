//! A caller whose credential was found good, and whether it still is.
//!
//! When the rules change, the next use makes the caller anew under the new ones. What holds the old one, an open stream or a
//! connection, finds the new one through it. So does a worker that still serves the snapshot before, the other way round.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::sync::{Arc, OnceLock};

use weir_units::Micros;

use super::CallerAccess;
use super::caller_rights::CallerRights;
use super::proof::{Proof, ProofSource};
use super::refusals::{RefusalReason, Refused};
use super::rules::AccessRules;

/// The most changes of the rules that one open stream may see. Then it ends, and its client opens another.
const MAX_RENEWALS: u32 = 1_000;

/// A caller, as a call's context has it.
#[derive(Debug)]
pub(crate) struct Authenticated {
    access: Arc<CallerAccess>,
    rights: Arc<CallerRights>,
    source: ProofSource,
    /// Time at which it ends, in microseconds since 1970; `u64::MAX` is never.
    until: AtomicU64,
    /// The generation of the files under which the credential was found good last.
    generation: AtomicU64,
    /// The generation of the rules that `rights` are of.
    rules: u64,
    /// The caller under other rules: a list that only grows, so that rights can be borrowed from it.
    other: OnceLock<Arc<Self>>,
}

impl Authenticated {
    pub(super) fn new(access: &Arc<CallerAccess>, proof: Proof, generation: u64) -> Arc<Self> {
        Self::under(access, proof, generation, &access.rules.load())
    }

    fn under(access: &Arc<CallerAccess>, proof: Proof, generation: u64, rules: &AccessRules) -> Arc<Self> {
        let Proof { name, source, until } = proof;
        let rights = rules.rights_of(&name);
        let generation = AtomicU64::new(generation);
        let until = AtomicU64::new(until.map_or(u64::MAX, |until| until.0));
        let (rules, other) = (rules.generation(), OnceLock::new());
        Arc::new(Self { access: Arc::clone(access), rights, source, until, generation, rules, other })
    }

    /// The rights under the current rules.
    #[inline]
    pub(crate) fn rights(&self) -> &CallerRights {
        if self.is_current() { &self.rights } else { &self.newest().rights }
    }

    #[inline]
    pub(super) fn rights_under(&self, rules: &AccessRules) -> &CallerRights {
        if self.rules == rules.generation() { &self.rights } else { &self.other_under(rules).rights }
    }

    /// True if its rights are those of the current rules.
    #[inline]
    pub(super) fn is_current(&self) -> bool {
        self.rules == self.access.rules_generation.load(Acquire)
    }

    /// The caller under the current rules, which are not those of `rights`.
    #[cold]
    pub(super) fn newest(&self) -> &Arc<Self> {
        self.other_under(&self.access.rules.load())
    }

    #[cold]
    fn other_under(&self, rules: &AccessRules) -> &Arc<Self> {
        let mut other = self.other.get_or_init(|| self.renewed(rules));
        while other.rules != rules.generation() {
            other = other.other.get_or_init(|| self.renewed(rules));
        }
        other
    }

    fn renewed(&self, rules: &AccessRules) -> Arc<Self> {
        let until = self.until.load(Relaxed);
        let until = (until != u64::MAX).then_some(Micros(until));
        let (name, source) = (self.rights.name().clone(), self.source.clone());
        Self::under(&self.access, Proof { name, source, until }, self.generation.load(Relaxed), rules)
    }

    /// True if an open stream has seen too many changes of the rules: each leaves something in memory.
    fn is_worn_out(&self) -> bool {
        let mut renewals = 0;
        let mut caller = self;
        while let Some(other) = caller.other.get() {
            (caller, renewals) = (&**other, renewals + 1);
        }
        renewals >= MAX_RENEWALS
    }

    /// Checks that the credential has not ended, and is in the files still.
    pub(crate) fn check(&self) -> Result<(), RefusalReason> {
        if matches!(self.source, ProofSource::Connection) {
            return Ok(());
        }
        if self.generation.load(Relaxed) != self.access.generation.load(Acquire) {
            self.check_in_files()?;
        }
        let until = self.until.load(Relaxed);
        if until != u64::MAX && self.access.clock.now().0 >= until {
            return Err(RefusalReason::Expired);
        }
        Ok(())
    }

    #[cold]
    fn check_in_files(&self) -> Result<(), RefusalReason> {
        let (files, until) = (self.access.files.load(), self.until.load(Relaxed));
        let until = (until != u64::MAX).then_some(Micros(until));
        let until = files.still_proves(&self.source, until, self.access.clock.now())?;
        self.until.store(until.map_or(u64::MAX, |until| until.0), Relaxed);
        self.generation.store(files.generation(), Relaxed);
        Ok(())
    }

    /// True if the credential can end before its connection does.
    pub(crate) fn can_end(&self) -> bool {
        !matches!(self.source, ProofSource::Connection)
    }

    /// Returns what ends an open stream, once its credential has ended.
    pub(crate) fn ended(&self) -> Option<Refused> {
        let worn_out = self.is_worn_out().then_some(RefusalReason::Expired);
        let reason = worn_out.or_else(|| self.check().err())?;
        Some(self.access.metrics.refuse(reason, self.rights.name().shown(), "an open stream"))
    }
}
