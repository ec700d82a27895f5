//! Looking at a directory again and again, and reading it when it has changed.
//!
//! It polls, and takes no events: a ConfigMap changes by a swap of symbolic links, editors replace files, and
//! network file systems send no events. Two looks at 1,000 files cost some milliseconds of a background
//! thread. A change is read once two looks in a row see the same, so that no half of it is taken for all.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use weir_core::envoy::Domains;

use super::directory::DirectoryListing;
use super::errors::EnvoyErrors;
use super::files::EnvoyFiles;

/// The domains that serve now. Reading them takes no lock; they change all at once.
pub type CurrentDomains = Arc<ArcSwap<Domains>>;

/// A directory whose files serve.
#[derive(Debug)]
pub struct EnvoySource {
    folder: PathBuf,
    merge_domains: bool,
    current: CurrentDomains,
    /// What was read last, whether it serves or was refused.
    read: DirectoryListing,
    /// What the last look saw.
    seen: DirectoryListing,
}

/// What a look found.
#[derive(Debug)]
pub enum Look {
    /// What it found before, or something that still changes.
    Same,
    /// Other files, which serve from now on.
    Loaded {
        /// What they had to say that has no effect.
        warnings: Vec<String>,
    },
    /// Other files, which are mistaken: what served before goes on.
    Refused(EnvoyErrors),
}

impl EnvoySource {
    /// The files of `folder` as they are now, with the warnings about them.
    pub fn open(folder: PathBuf, merge_domains: bool) -> Result<(Self, Vec<String>), EnvoyErrors> {
        let read = DirectoryListing::of(&folder);
        let files = EnvoyFiles::read(&folder, &read, merge_domains)?;
        let warnings = files.warnings.clone();
        let current = Arc::new(ArcSwap::from_pointee(files.compile()));
        // What changed while it was read is seen by the first look.
        Ok((Self { folder, merge_domains, current, seen: read.clone(), read }, warnings))
    }

    /// What serves, now and after each change.
    #[must_use]
    pub fn current(&self) -> CurrentDomains {
        self.current.clone()
    }

    /// Looks once.
    pub fn look(&mut self) -> Look {
        let now = DirectoryListing::of(&self.folder);
        let settled = now == self.seen;
        self.seen = now;
        if !settled || self.seen == self.read {
            return Look::Same;
        }
        let files = EnvoyFiles::read(&self.folder, &self.seen, self.merge_domains);
        // A change in the middle of reading: what was read may be half of it.
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
