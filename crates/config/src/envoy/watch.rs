//! Polls a directory, and reloads it after a change.
//!
//! It polls instead of using file system events: a ConfigMap changes by a swap of symbolic links, editors replace
//! files, and network file systems send no events. Two polls of 1,000 files cost some milliseconds of a background
//! thread. A change is loaded after two equal snapshots in a row, so that no half-written change is loaded.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use weir_core::envoy::Domains;

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
    /// The snapshot that was read last, whether it was loaded or refused.
    read: DirectoryListing,
    /// The snapshot of the last poll.
    seen: DirectoryListing,
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
        // A change during the read is detected by the first poll.
        Ok((Self { folder, merge_domains, current, seen: read.clone(), read }, warnings))
    }

    /// Returns the current domains, which follow each reload.
    #[must_use]
    pub fn current(&self) -> CurrentDomains {
        self.current.clone()
    }

    /// Polls once.
    pub fn look(&mut self) -> Look {
        let now = DirectoryListing::of(&self.folder);
        let settled = now == self.seen;
        self.seen = now;
        if !settled || self.seen == self.read {
            return Look::Same;
        }
        let files = EnvoyFiles::read(&self.folder, &self.seen, self.merge_domains);
        // A change during the read: the result may be inconsistent.
        if DirectoryListing::of(&self.folder) != self.seen {
            return Look::Same;
        }
        self.read = self.seen.clone();
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
