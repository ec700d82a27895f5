//! Polls a directory, and reloads it after a change. Two polls of 1,000 files cost some milliseconds of a background
//! thread.

use std::sync::Arc;

use crate::rules::Domains;
use arc_swap::ArcSwap;

use super::directory::DirectoryListing;
use super::envoy_files::FileSet;
use super::errors::EnvoyErrors;
use super::folder::EnvoyFolder;
use super::isolate::{GoodFiles, RefusedDomain};
use crate::overlay::EnvoyOverlay;
use weir_config::Settling;

/// The current domains. Reads are lock-free; a reload replaces all of them atomically.
pub type CurrentDomains = Arc<ArcSwap<Domains>>;

/// A watched directory and its current domains.
#[derive(Debug)]
pub struct EnvoySource {
    folder: EnvoyFolder,
    merge_domains: bool,
    /// The good domains, if mistakes of one domain leave others alone.
    good: Option<GoodFiles>,
    current: CurrentDomains,
    files: Settling<DirectoryListing>,
    unmatched: usize,
}

/// The result of a poll.
#[derive(Debug)]
pub enum FilesPoll {
    /// No change, or a change that has not settled yet.
    Same,
    /// Changed files, which are now current.
    Loaded {
        /// Warnings about keys without effect.
        warnings: Vec<String>,
    },
    /// Changed files, of which the good domains are now current.
    Partly {
        /// Warnings about keys without effect.
        warnings: Vec<String>,
        /// All mistakes.
        errors: EnvoyErrors,
        /// The domains that they concern, as far as they have a name.
        refused: Vec<RefusedDomain>,
    },
    /// Changed files with mistakes; the previous domains stay current.
    Refused(EnvoyErrors),
}

impl EnvoySource {
    /// Loads the files of `folder`. With `isolate_domains`, a mistake concerns only its own domain; otherwise it is an
    /// error.
    pub fn open(
        folder: impl Into<EnvoyFolder>,
        merge_domains: bool,
        isolate_domains: bool,
    ) -> Result<(Self, FilesPoll), EnvoyErrors> {
        let folder = folder.into();
        let mut source = Self {
            merge_domains,
            good: isolate_domains.then(GoodFiles::default),
            current: CurrentDomains::default(),
            files: Settling::new(DirectoryListing::list(&folder)),
            folder,
            unmatched: 0,
        };
        let (set, errors) = source.read();
        match source.load(set, errors) {
            FilesPoll::Refused(errors) => Err(errors),
            polled => Ok((source, polled)),
        }
    }

    /// Returns the current domains, which follow each reload.
    #[must_use]
    pub fn current(&self) -> CurrentDomains {
        self.current.clone()
    }

    /// Number of entries of the overlay that match no rule.
    #[must_use]
    pub const fn unmatched(&self) -> usize {
        self.unmatched
    }

    /// Changes the overlay on the rules. It counts from the next read on.
    pub fn set_overlay(&mut self, overlay: EnvoyOverlay) {
        self.folder = self.folder.clone().with_overlay(overlay);
    }

    /// Polls once.
    pub fn poll(&mut self) -> FilesPoll {
        if !self.files.is_settled(DirectoryListing::list(&self.folder)) {
            return FilesPoll::Same;
        }
        self.load_seen()
    }

    /// Reads the files at once, changed or not.
    pub fn reload(&mut self) -> FilesPoll {
        self.files.is_settled(DirectoryListing::list(&self.folder));
        self.load_seen()
    }

    fn load_seen(&mut self) -> FilesPoll {
        let (set, errors) = self.read();
        // A change during the read: the result may be inconsistent.
        if DirectoryListing::list(&self.folder) != *self.files.seen() {
            return FilesPoll::Same;
        }
        self.files.was_read();
        self.load(set, errors)
    }

    /// Reads what was seen last.
    fn read(&self) -> (FileSet, EnvoyErrors) {
        FileSet::read(&self.folder, self.files.seen(), self.merge_domains)
    }

    /// Makes what is good of `set` current.
    fn load(&mut self, set: FileSet, errors: EnvoyErrors) -> FilesPoll {
        let warnings = set.read.warnings.clone();
        self.unmatched = set.read.unmatched;
        let is_listed = self.files.seen().failure(&self.folder).is_none();
        let (domains, refused) = match self.good.as_mut().filter(|_| is_listed) {
            Some(good) => good.take(set),
            None if errors.is_empty() => (set.read.compile(), Vec::new()),
            None => return FilesPoll::Refused(errors),
        };
        self.current.store(Arc::new(domains));
        if errors.is_empty() {
            FilesPoll::Loaded { warnings }
        } else {
            FilesPoll::Partly { warnings, errors, refused }
        }
    }
}
