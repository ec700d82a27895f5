//! Every mistake of a configuration, with where it is and why it is one.

use std::fmt;
use std::path::{Path, PathBuf};

/// The most mistakes that one run reports; the rest is counted. A file of nonsense must not fill a log.
pub const MAX_ERRORS: usize = 1000;

/// A place in a file, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Where a mistake is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MistakePlace {
    /// The file as a whole.
    File,
    /// Here in the file.
    At(Position),
    /// A flag or the environment variable that stands for it.
    Setting(String),
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigError {
    /// Where it is.
    pub place: MistakePlace,
    /// Which value it is about, such as `strategies.login.limits[1].uniform.interval`; empty for the
    /// file as a whole.
    pub path: String,
    /// Why it is one, naming the value and the bound.
    pub reason: String,
}

impl ConfigError {
    /// `FILE:LINE:COLUMN: path: reason`
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

/// Every mistake of one configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    source: String,
    errors: Vec<ConfigError>,
    untold: usize,
}

impl ConfigErrors {
    /// The file, as it was named.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The mistakes: the file as a whole, then by position, then settings.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// How many more there are.
    pub(super) fn untold(&self) -> usize {
        self.untold
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    /// One mistake per line: `FILE:LINE:COLUMN: path: reason`.
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

/// Gathers mistakes while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct MistakeReport {
    errors: Vec<ConfigError>,
    untold: usize,
    /// What paths in the file are relative to: its directory.
    base: PathBuf,
    /// What is missing here and is no mistake of the file; `None` where it is needed now.
    notes: Option<Vec<ConfigError>>,
    /// Whether what is reported is such a note.
    is_noting: bool,
}

impl MistakeReport {
    /// For the file at `path`.
    pub(super) fn of(path: &Path) -> Self {
        Self { base: path.parent().unwrap_or(Path::new("")).to_owned(), ..Self::default() }
    }

    /// The same for a file that is checked, perhaps on another machine than it is meant for.
    pub(super) fn with_notes(self) -> Self {
        Self { notes: Some(Vec::new()), ..self }
    }

    /// The file that a path in the configuration means.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    /// Whether a file that is not there is no mistake.
    pub(super) fn notes_missing_files(&self) -> bool {
        self.notes.is_some()
    }

    /// What `report` says is a note where notes are taken, and a mistake elsewhere.
    pub(super) fn missing(&mut self, report: impl FnOnce(&mut Self)) {
        self.is_noting = self.notes.is_some();
        report(self);
        self.is_noting = false;
    }

    /// The notes, a line each.
    pub(super) fn notes(&self, source: &str) -> Vec<String> {
        self.notes.iter().flatten().map(|note| note.text(source)).collect()
    }

    /// A mistake at a place in the file.
    pub(super) fn at(&mut self, at: Position, path: &str, reason: impl Into<String>) {
        self.add(MistakePlace::At(at), path, reason.into());
    }

    /// A mistake of the file as a whole.
    pub(super) fn file(&mut self, reason: impl Into<String>) {
        self.add(MistakePlace::File, "", reason.into());
    }

    /// A mistake in a flag or a variable.
    pub(super) fn setting(&mut self, label: String, path: &str, reason: impl Into<String>) {
        self.add(MistakePlace::Setting(label), path, reason.into());
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// How many mistakes have been reported, so that a follow-up of one can be left out.
    pub(super) fn len(&self) -> usize {
        self.errors.len() + self.untold
    }

    /// Whether further mistakes are only counted, so that no advice need be computed for them.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    /// What was read, if nothing was wrong with it.
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
            // There are as many as fields for files: a few.
            Some(notes) if self.is_noting => notes.push(error),
            _ if is_full => self.untold += 1,
            _ => self.errors.push(error),
        }
    }
}
