//! Polls a directory, and reloads it after a change. Two polls of 1,000 files cost some milliseconds of a background
//! thread.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use weir_core::envoy::Domains;

use super::super::watched_files::Settling;
use super::directory::DirectoryListing;
use super::errors::EnvoyErrors;
use super::files::EnvoyFiles;

/// The current domains. Reads are lock-free; a reload replaces all of them atomically.
pub type CurrentDomains = Arc<ArcSwap<Domains>>;

/// A watched directory and its current domains.
#[derive(Debug)]
pub struct EnvoySource {
    folder: PathBuf,
    merge_domains: bool,
    current: CurrentDomains,
    files: Settling<DirectoryListing>,
}

/// The result of a poll.
#[derive(Debug)]
pub enum Look {
    /// No change, or a change that has not settled yet.
    Same,
    /// Changed files, which are now current.
    Loaded {
        /// Warnings about keys without effect.
        warnings: Vec<String>,
    },
    /// Changed files with mistakes; the previous domains stay current.
    Refused(EnvoyErrors),
}

impl EnvoySource {
    /// Loads the files of `folder`, and returns their warnings.
    pub fn open(folder: PathBuf, merge_domains: bool) -> Result<(Self, Vec<String>), EnvoyErrors> {
        let read = DirectoryListing::of(&folder);
        let files = EnvoyFiles::read(&folder, &read, merge_domains)?;
        let warnings = files.warnings.clone();
        let current = Arc::new(ArcSwap::from_pointee(files.compile()));
        Ok((Self { folder, merge_domains, current, files: Settling::new(read) }, warnings))
    }

    /// Returns the current domains, which follow each reload.
    #[must_use]
    pub fn current(&self) -> CurrentDomains {
        self.current.clone()
    }

    /// Polls once.
    pub fn look(&mut self) -> Look {
        if !self.files.is_settled(DirectoryListing::of(&self.folder)) {
            return Look::Same;
        }
        let files = EnvoyFiles::read(&self.folder, self.files.seen(), self.merge_domains);
        // A change during the read: the result may be inconsistent.
        if DirectoryListing::of(&self.folder) != *self.files.seen() {
            return Look::Same;
        }
        self.files.was_read();
        match files {
            Ok(files) => {
                let warnings = files.warnings.clone();
                self.current.store(Arc::new(files.compile()));
                Look::Loaded { warnings }
            }
            Err(errors) => Look::Refused(errors),
        }
    }
}
