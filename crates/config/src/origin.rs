//! The origin of a configuration, from which it can be read again.

use std::path::{Path, PathBuf};

use super::files::files_of;
use super::watched_files::FilesSnapshot;
use super::{Config, ConfigErrors, ConfigOverrides};

/// The files of a configuration, and the overrides of the start, which stay in force.
#[derive(Debug, Clone)]
pub struct ConfigOrigin {
    /// The files and directories as they were named.
    pub(super) paths: Vec<PathBuf>,
    pub(super) overrides: ConfigOverrides,
    /// The files by their numbers, also those that could not be read.
    pub(super) files: Vec<PathBuf>,
    /// The files that values name.
    pub(super) value_files: Vec<PathBuf>,
    /// All of these files as they were right before they were read.
    pub(super) as_read: FilesSnapshot,
}

impl ConfigOrigin {
    /// Returns the files as they were when they were read.
    #[must_use]
    pub fn as_read(&self) -> &FilesSnapshot {
        &self.as_read
    }

    /// Returns a file by its number; `None` if there is only one.
    #[must_use]
    pub fn file(&self, number: usize) -> Option<&Path> {
        if self.files.len() > 1 { self.files.get(number).map(PathBuf::as_path) } else { None }
    }

    /// Returns the present state of the files, of new ones in directories, and of those that values name.
    #[must_use]
    pub fn snapshot(&self) -> FilesSnapshot {
        let mut snapshot = FilesSnapshot::default();
        for file in files_of(&self.paths) {
            snapshot.add(&file.path);
        }
        self.value_files.iter().for_each(|path| snapshot.add(path));
        snapshot
    }

    /// Reads the files again. Also where they have mistakes, it remembers which files were read.
    pub fn read(&mut self) -> Result<Config, ConfigErrors> {
        let (config, origin) = Config::read_all(&self.paths, &self.overrides);
        *self = origin;
        config
    }

    /// Keeps the strategies as the files write them, also if the files turn live control off.
    #[must_use]
    pub fn keeping_written(self) -> Self {
        Self { overrides: self.overrides.keeping_written(), ..self }
    }
}
