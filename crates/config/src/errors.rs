//! All mistakes of a configuration, with their positions and reasons.

use std::fmt;
use std::path::{Path, PathBuf};

/// Maximum number of reported mistakes; the rest is only counted. A file of nonsense must not fill a log.
pub const MAX_ERRORS: usize = 1000;

/// A position in a file. Both numbers start at 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The place of a mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MistakePlace {
    /// The file as a whole.
    File,
    /// A position in the file.
    At(Position),
    /// A flag or its environment variable.
    Setting(String),
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigError {
    /// Its place.
    pub place: MistakePlace,
    /// The path of the value, such as `strategies.login.limits[1].uniform.interval`; empty for the file as a whole.
    pub path: String,
    /// The reason, with the value and the bound.
    pub reason: String,
}

impl ConfigError {
    /// Formats `FILE:LINE:COLUMN: path: reason`.
    pub(super) fn text(&self, source: &str) -> String {
        let Self { place, path, reason } = self;
        let place = match place {
            MistakePlace::File => source.to_owned(),
            MistakePlace::At(Position { line, column }) => format!("{source}:{line}:{column}"),
            MistakePlace::Setting(label) => label.clone(),
        };
        if path.is_empty() { format!("{place}: {reason}") } else { format!("{place}: {path}: {reason}") }
    }
}

/// All mistakes of one configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    source: String,
    errors: Vec<ConfigError>,
    untold: usize,
}

impl ConfigErrors {
    /// Returns the file's name as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the mistakes: of the file as a whole, then by position, then of settings.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// Returns the number of further mistakes beyond the reported ones.
    pub(super) fn untold(&self) -> usize {
        self.untold
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    /// Formats one mistake per line: `FILE:LINE:COLUMN: path: reason`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{}", error.text(&self.source))?;
        }
        if self.untold > 0 {
            write!(f, "\n{}: {} more mistakes are not shown", self.source, self.untold)?;
        }
        Ok(())
    }
}

/// A collector of mistakes while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct MistakeReport {
    errors: Vec<ConfigError>,
    untold: usize,
    /// The base of relative paths: the file's directory.
    base: PathBuf,
    /// Notes on missing files, when a check tolerates them; `None` if a missing file is a mistake.
    notes: Option<Vec<ConfigError>>,
    /// True while reports are stored as notes.
    is_noting: bool,
}

impl MistakeReport {
    /// Creates a collector for the file at `path`.
    pub(super) fn of(path: &Path) -> Self {
        Self { base: path.parent().unwrap_or(Path::new("")).to_owned(), ..Self::default() }
    }

    /// Tolerates missing files as notes, for a check on another machine than the target.
    pub(super) fn with_notes(self) -> Self {
        Self { notes: Some(Vec::new()), ..self }
    }

    /// Resolves a path of the configuration.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    /// True if missing files are notes instead of mistakes.
    pub(super) fn notes_missing_files(&self) -> bool {
        self.notes.is_some()
    }

    /// Runs `report`, whose reports become notes if missing files are tolerated, and mistakes otherwise.
    pub(super) fn missing(&mut self, report: impl FnOnce(&mut Self)) {
        self.is_noting = self.notes.is_some();
        report(self);
        self.is_noting = false;
    }

    /// Returns the notes, a line each.
    pub(super) fn notes(&self, source: &str) -> Vec<String> {
        self.notes.iter().flatten().map(|note| note.text(source)).collect()
    }

    /// Reports a mistake at a position in the file.
    pub(super) fn at(&mut self, at: Position, path: &str, reason: impl Into<String>) {
        self.add(MistakePlace::At(at), path, reason.into());
    }

    /// Reports a mistake of the file as a whole.
    pub(super) fn file(&mut self, reason: impl Into<String>) {
        self.add(MistakePlace::File, "", reason.into());
    }

    /// Reports a mistake in a flag or a variable.
    pub(super) fn setting(&mut self, label: String, path: &str, reason: impl Into<String>) {
        self.add(MistakePlace::Setting(label), path, reason.into());
    }

    /// True if no mistake was reported so far.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the number of mistakes so far, which lets callers suppress follow-up mistakes.
    pub(super) fn len(&self) -> usize {
        self.errors.len() + self.untold
    }

    /// True if further mistakes are only counted, so that no suggestion need be computed for them.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    /// Returns `read` if there was no mistake, otherwise the mistakes.
    pub(super) fn finish<T>(mut self, source: &str, read: T) -> Result<T, ConfigErrors> {
        if self.errors.is_empty() {
            return Ok(read);
        }
        self.errors.sort();
        Err(ConfigErrors { source: source.to_owned(), errors: self.errors, untold: self.untold })
    }

    fn add(&mut self, place: MistakePlace, path: &str, reason: String) {
        let error = ConfigError { place, path: path.to_owned(), reason };
        let is_full = self.is_full();
        match &mut self.notes {
            // Bounded by the number of fields for files.
            Some(notes) if self.is_noting => notes.push(error),
            _ if is_full => self.untold += 1,
            _ => self.errors.push(error),
        }
    }
}
