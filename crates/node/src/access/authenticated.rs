//! A caller whose credential was found good, and whether it still is.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use weir_units::Micros;

use super::CallerAccess;
use super::caller_rights::CallerRights;
use super::proof::{Proof, ProofSource};
use super::refusals::{RefusalReason, Refused};

/// A caller, as a call's context has it.
#[derive(Debug)]
pub(crate) struct Authenticated {
    access: Arc<CallerAccess>,
    rights: Arc<CallerRights>,
    source: ProofSource,
    /// When it ends, in microseconds since 1970; `u64::MAX` is never.
    until: AtomicU64,
    /// The generation of the files under which the credential was found good last.
    generation: AtomicU64,
}

impl Authenticated {
    /// Creates the caller of a proof under a generation of the files.
    pub(super) fn new(access: &Arc<CallerAccess>, proof: Proof, generation: u64) -> Arc<Self> {
        let Proof { name, source, until } = proof;
        let rights = access.rules.rights_of(&name);
        let generation = AtomicU64::new(generation);
        let until = AtomicU64::new(until.map_or(u64::MAX, |until| until.0));
        Arc::new(Self { access: Arc::clone(access), rights, source, until, generation })
    }

    pub(crate) fn rights(&self) -> &CallerRights {
        &self.rights
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

    /// Checks the credential in files that have changed.
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
        let reason = self.check().err()?;
        Some(self.access.metrics.refuse(reason, self.rights.name().shown(), "an open stream"))
    }
}
