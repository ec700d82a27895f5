//! Sources of expanded values.

use std::ffi::OsString;

/// Looks up a variable of the environment, which this crate does not read itself.
pub type VariableLookup = fn(&str) -> Option<OsString>;

/// The source of a value, with its text as it is written, for mistakes.
#[derive(Debug, Clone)]
pub(super) enum ExpandedFrom {
    /// Variables.
    Variables(String),
    /// At least one file.
    Files(String),
}

impl ExpandedFrom {
    /// The reason of a mistake in such a value. Files often hold secrets, so a reason that may show one is left out.
    pub(super) fn mistake(&self, reason: String) -> String {
        match self {
            Self::Variables(written) => format!("{reason} (from {written})"),
            Self::Files(written) => {
                format!(
                    "what {written} stands for cannot be the value here; it is not shown, because it may be a secret"
                )
            }
        }
    }
}
