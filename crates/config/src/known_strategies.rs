//! The strategies of a file as far as they could be read, for what refers to them.

use std::collections::{BTreeMap, HashMap};

use weir_core::strategy::{Access, MAX_NAME, OverrideError, Scope, Strategy};

use super::errors::MistakeReport;
use super::fields::NamedNode;
use super::values::{nearest, quote, text_within};

/// The strategies of the file.
#[derive(Debug, Default)]
pub(super) struct Strategies {
    /// The valid strategies: all of them, if the file has no mistake.
    pub(super) made: Vec<Strategy>,
    /// The access lists of each, in the same order.
    pub(super) access: Vec<Access>,
    /// The indices of each one's shadows, in the same order.
    pub(super) shadows: Vec<Vec<usize>>,
    /// Every name and its position, including those of mistaken strategies: a reference to a mistaken strategy is not
    /// itself a mistake.
    pub(super) names: BTreeMap<String, usize>,
    /// The index of each name in `made`.
    pub(super) made_at: HashMap<String, usize>,
    /// The outlines of mistaken strategies.
    pub(super) mistaken: HashMap<String, Outline>,
    /// True if all strategies could be read, so that a name that is not there does not exist.
    pub(super) whole: bool,
}

impl Strategies {
    /// Returns the index of this name in `made`.
    pub(super) fn made_place(&self, name: &str) -> Option<usize> {
        self.made_at.get(name).copied()
    }

    /// Returns the strategy of this name, if the file has one.
    pub(super) fn base(&self, name: &str) -> Option<Base<'_>> {
        let made = self.made_at.get(name).and_then(|&index| self.made.get(index)).map(Base::Made);
        made.or_else(|| self.mistaken.get(name).map(Base::Mistaken))
    }

    /// Reads a reference to a strategy, and reports an unknown name.
    pub(super) fn reference(&self, value: &NamedNode<'_>, report: &mut MistakeReport) -> Option<String> {
        /// Maximum number of names that are compared for a suggestion.
        const COMPARED: usize = 1000;
        let name = value.read(report, |s| text_within(s, MAX_NAME))?;
        if self.names.contains_key(&name) {
            return Some(name);
        }
        // The missing name may be in a part that could not be read.
        if self.whole {
            let names = self.names.keys().map(String::as_str).take(COMPARED);
            let near = if report.is_full() { None } else { nearest(&name, names) };
            let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            value.report(report, format!("there is no strategy {}{help}", quote(&name)));
        }
        None
    }
}

/// The base of an override.
pub(super) enum Base<'s> {
    /// A valid strategy.
    Made(&'s Strategy),
    /// A mistaken strategy, as far as it could be read.
    Mistaken(&'s Outline),
}

/// The names and scopes of a mistaken strategy's limits.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) name: String,
    /// A scope that could not be read is `None`.
    pub(super) limits: Vec<(String, Option<Scope>)>,
    /// True if every limit's name is known.
    pub(super) whole: bool,
}

impl Outline {
    /// Checks that this limit can be overridden, as far as that is known.
    pub(super) fn check_override(&self, limit: &str) -> Result<(), OverrideError> {
        match self.limits.iter().find(|(name, _)| name == limit) {
            Some((_, Some(scope))) => OverrideError::check(&self.name, limit, scope),
            None if self.whole => {
                Err(OverrideError::unknown(&self.name, self.limits.iter().map(|(name, _)| name.as_str())))
            }
            _ => Ok(()),
        }
    }
}
