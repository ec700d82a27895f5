//! All mistakes in a set of files, in the wording of the reference implementation.

use std::fmt;

use weir_config::{ConfigErrors, MAX_ERRORS, MistakePlace, Position};

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvoyError {
    /// The file, or the directory.
    pub file: String,
    /// The reason.
    pub reason: String,
    /// Position of the mistake in the file.
    pub at: Option<Position>,
}

/// All mistakes in one set of files, sorted by file and position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvoyErrors {
    errors: Vec<EnvoyError>,
    untold: usize,
}

impl EnvoyErrors {
    /// Returns the mistakes, at most [`MAX_ERRORS`].
    #[must_use]
    pub fn errors(&self) -> &[EnvoyError] {
        &self.errors
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn add(&mut self, error: EnvoyError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.untold += 1;
        }
    }

    /// Adds the mistakes of one file.
    pub(super) fn extend(&mut self, errors: &ConfigErrors) {
        for error in errors.errors() {
            let at = match error.place {
                MistakePlace::At(at) => Some(at),
                MistakePlace::File | MistakePlace::OneFile(_) | MistakePlace::Setting(_) => None,
            };
            self.add(EnvoyError { file: errors.source().to_owned(), reason: error.reason.clone(), at });
        }
        self.untold += errors.untold();
    }
}

impl std::error::Error for EnvoyErrors {}

impl fmt::Display for EnvoyError {
    /// Formats the reference's line, followed by the position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)?;
        match self.at {
            Some(Position { line, column, .. }) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for EnvoyErrors {
    /// Formats one mistake per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        if self.untold > 0 {
            write!(f, "\n{} more mistakes are not shown", self.untold)?;
        }
        Ok(())
    }
}
