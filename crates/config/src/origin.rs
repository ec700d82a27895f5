//! Where a configuration came from, so that it can be read again.

use std::path::PathBuf;

use super::{Config, ConfigErrors, ConfigOverrides};

/// The files of a configuration, and the overrides of the start, which stay in force.
#[derive(Debug, Clone)]
pub struct ConfigOrigin {
    pub(super) file: PathBuf,
    pub(super) overrides: ConfigOverrides,
}

impl ConfigOrigin {
    /// Returns every file that is read.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        vec![self.file.clone()]
    }

    /// Keeps the strategies as the files write them, also if the files turn live control off.
    #[must_use]
    pub fn keeping_written(self) -> Self {
        Self { overrides: self.overrides.keeping_written(), ..self }
    }

    /// Reads the files again.
    pub fn read(&self) -> Result<Config, ConfigErrors> {
        Config::load(&self.file, &self.overrides)
    }
}
