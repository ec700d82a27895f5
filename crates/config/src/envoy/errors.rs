//! Every mistake of a set of files, in the words that the reference has for it.

use std::fmt;

use crate::errors::{ConfigErrors, MAX_ERRORS, MistakePlace, Position};

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvoyError {
    /// The file, or the directory.
    pub file: String,
    /// Why it cannot be used.
    pub reason: String,
    /// Where in the file.
    pub at: Option<Position>,
}

/// Every mistake of one set of files, in the order of files and places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvoyErrors {
    errors: Vec<EnvoyError>,
    untold: usize,
}

impl EnvoyErrors {
    /// The mistakes, [`MAX_ERRORS`] of them at most.
    #[must_use]
    pub fn errors(&self) -> &[EnvoyError] {
        &self.errors
    }

    /// Whether there is none.
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

    /// Adds those of one file.
    pub(super) fn extend(&mut self, errors: &ConfigErrors) {
        for error in errors.errors() {
            let at = match error.place {
                MistakePlace::At(at) => Some(at),
                MistakePlace::File | MistakePlace::Setting(_) => None,
            };
            self.add(EnvoyError { file: errors.source().to_owned(), reason: error.reason.clone(), at });
        }
        self.untold += errors.untold();
    }
}

impl From<&ConfigErrors> for EnvoyErrors {
    fn from(errors: &ConfigErrors) -> Self {
        let mut all = Self::default();
        all.extend(errors);
        all
    }
}

impl std::error::Error for EnvoyErrors {}

impl fmt::Display for EnvoyError {
    /// The reference's line, with the place behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)?;
        match self.at {
            Some(Position { line, column }) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for EnvoyErrors {
    /// One mistake per line.
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
