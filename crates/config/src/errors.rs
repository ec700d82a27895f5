//! All mistakes of a configuration, with their positions and reasons.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::expanded_from::ExpandedFrom;

/// Maximum number of reported mistakes; the rest is only counted. A file of nonsense must not fill a log.
pub const MAX_ERRORS: usize = 1000;

/// A position in a file. Lines and columns start at 1; columns count characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The file, by its number among those of the configuration.
    pub file: usize,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The place of a mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MistakePlace {
    /// The configuration as a whole.
    File,
    /// One of its files as a whole, by its number.
    OneFile(usize),
    /// A position in the file.
    At(Position),
    /// A flag or its environment variable.
    Setting(String),
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigError {
    /// The place of the mistake.
    pub place: MistakePlace,
    /// The path of the value, such as `strategies.login.limits[1].uniform.interval`; empty for a file as a whole.
    pub path: String,
    /// The reason, with the value and the bound.
    pub reason: String,
}

impl ConfigError {
    /// Formats `FILE:LINE:COLUMN: path: reason`.
    pub(super) fn text(&self, sources: &SourceNames) -> String {
        let Self { place, path, reason } = self;
        let place = match place {
            MistakePlace::File => sources.whole.clone(),
            MistakePlace::OneFile(file) => sources.name(*file).to_owned(),
            MistakePlace::At(Position { file, line, column }) => {
                format!("{}:{line}:{column}", sources.name(*file))
            }
            MistakePlace::Setting(label) => label.clone(),
        };
        if path.is_empty() { format!("{place}: {reason}") } else { format!("{place}: {path}: {reason}") }
    }
}

/// The names of a configuration's files, for mistakes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourceNames {
    /// The file or folder that was named on the command line.
    whole: String,
    /// The files of a folder, if they are several.
    files: Vec<String>,
}

impl SourceNames {
    fn name(&self, file: usize) -> &str {
        self.files.get(file).unwrap_or(&self.whole)
    }
}

/// All mistakes of one configuration, in the order of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    sources: SourceNames,
    errors: Vec<ConfigError>,
    untold: usize,
}

impl ConfigErrors {
    /// Returns the configuration's name as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.sources.whole
    }

    /// Returns the mistakes: of the configuration as a whole, of whole files, then by position, then of settings.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// Returns the number of further mistakes beyond the reported ones.
    #[must_use]
    pub fn untold(&self) -> usize {
        self.untold
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    /// Formats one mistake per line: `FILE:LINE:COLUMN: path: reason`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{}", error.text(&self.sources))?;
        }
        if self.untold > 0 {
            write!(f, "\n{}: {} more mistakes are not shown", self.sources.whole, self.untold)?;
        }
        Ok(())
    }
}

/// A collector of mistakes while a configuration is read.
#[derive(Debug, Default)]
pub struct MistakeReport {
    errors: Vec<ConfigError>,
    untold: usize,
    sources: SourceNames,
    /// The base of relative paths of each file: its directory.
    bases: Vec<PathBuf>,
    /// The file that is being parsed.
    parsing: Option<usize>,
    /// Values that variables or other files gave, by their positions.
    expanded: HashMap<Position, ExpandedFrom>,
    /// The notes of a check; `None` outside of a check, where a missing file is a mistake.
    notes: Option<Vec<ConfigError>>,
    /// True while reports are stored as notes.
    is_noting: bool,
}

impl MistakeReport {
    /// Begins to parse the file at `path`: whatever concerns a file as a whole concerns this one.
    pub(super) fn begin_file(&mut self, path: &Path) {
        self.parsing = Some(self.bases.len());
        self.sources.files.push(path.display().to_string());
        self.bases.push(path.parent().unwrap_or(Path::new("")).to_owned());
    }

    /// All files are parsed.
    pub(super) fn end_files(&mut self) {
        self.parsing = None;
    }

    /// Returns the number of the file that is being parsed.
    pub(super) fn file_number(&self) -> usize {
        self.parsing.unwrap_or_default()
    }

    /// Formats a position for a mistake in `other`, with the file's name if it is another one.
    pub(super) fn place(&self, at: Position, other: Position) -> String {
        let Position { file, line, column } = at;
        match file == other.file {
            true => format!("{line}:{column}"),
            false => format!("{}:{line}:{column}", self.sources.name(file)),
        }
    }

    /// Remembers that the value at a position was given by a variable or by another file.
    pub(super) fn expanded(&mut self, at: Position, from: ExpandedFrom) {
        self.expanded.insert(at, from);
    }

    /// Tolerates missing files as notes, for a check on another machine than the target.
    pub(super) fn with_notes(self) -> Self {
        Self { notes: Some(Vec::new()), ..self }
    }

    /// Resolves a path that stands at this position of the configuration. `-` is a standard stream, wherever it stands.
    pub(super) fn resolve(&self, at: Position, path: &Path) -> PathBuf {
        if path == Path::new("-") {
            return path.to_owned();
        }
        self.bases.get(at.file).map_or_else(|| path.to_owned(), |base| base.join(path))
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

    /// Says what a check should tell, and what is no mistake.
    pub(super) fn note(&mut self, at: Position, path: &str, text: impl Into<String>) {
        if let Some(notes) = self.notes.as_mut().filter(|notes| notes.len() < MAX_ERRORS) {
            notes.push(ConfigError {
                place: MistakePlace::At(at),
                path: path.to_owned(),
                reason: text.into(),
            });
        }
    }

    /// Returns the notes, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.iter().flatten().map(|note| note.text(&self.sources)).collect()
    }

    /// Reports a mistake at a position in the file.
    pub fn at(&mut self, at: Position, path: &str, reason: impl Into<String>) {
        let reason = match self.expanded.get(&at) {
            Some(from) => from.mistake(reason.into()),
            None => reason.into(),
        };
        self.add(MistakePlace::At(at), path, reason);
    }

    /// Reports a mistake of the file that is being parsed, or of the configuration as a whole.
    pub fn file(&mut self, reason: impl Into<String>) {
        let place = self.parsing.map_or(MistakePlace::File, MistakePlace::OneFile);
        self.add(place, "", reason.into());
    }

    /// Reports a mistake in a flag or a variable.
    pub(super) fn setting(&mut self, label: String, path: &str, reason: impl Into<String>) {
        self.add(MistakePlace::Setting(label), path, reason.into());
    }

    /// True if no mistake was reported so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the number of mistakes so far, which lets callers suppress follow-up mistakes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.errors.len() + self.untold
    }

    /// True if further mistakes are only counted, so that no suggestion need be computed for them.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    /// Returns `read` if there was no mistake, otherwise the mistakes.
    pub fn finish<T>(mut self, source: &str, read: T) -> Result<T, ConfigErrors> {
        if self.errors.is_empty() {
            return Ok(read);
        }
        self.errors.sort();
        self.sources.whole = source.to_owned();
        Err(ConfigErrors { sources: self.sources, errors: self.errors, untold: self.untold })
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
