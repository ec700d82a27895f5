//! Settings that are given outside of the file: by a flag, by a variable, or, for a program that translates another
//! configuration, by their path.

use std::collections::BTreeMap;

use super::errors::MistakeReport;
use super::values::Scalar;

/// The ways to give a value outside of the file. Names are in snake case: `drain_timeout` is the variable
/// `WEIR_DRAIN_TIMEOUT` and the flag `--drain-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// In the file only, because it is the same on all nodes of a deployment.
    No,
    /// A flag and a variable.
    Flag(&'static str),
    /// A flag and a variable, whose current value `--help` does not show.
    HiddenFlag(&'static str),
    /// A variable only, because everybody on the machine can read a command line.
    Variable(&'static str),
}

/// Values that take precedence over the file, as text.
#[derive(Clone, Default)]
pub(super) struct GivenSettings {
    /// By [`Outside::name`].
    named: BTreeMap<String, GivenText>,
    /// By path, for settings of the file only.
    at: BTreeMap<String, GivenText>,
}

/// One value.
#[derive(Clone)]
struct GivenText {
    text: String,
    /// Label of mistakes, if not the flag and the variable.
    label: Option<String>,
}

impl GivenSettings {
    /// Adds a value by its [`Outside::name`], or by its path where it has none. Mistakes are reported under `label`.
    pub(super) fn put(&mut self, name: &str, label: Option<&str>, text: String) {
        let to = if label.is_some() && name.contains('.') { &mut self.at } else { &mut self.named };
        to.insert(name.to_owned(), GivenText { text, label: label.map(str::to_owned) });
    }

    /// Returns all names and paths with their texts.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().chain(&self.at).map(|(name, given)| (name.as_str(), given.text.as_str()))
    }

    /// Returns the names of those that are given by name.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// True if this name or path is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.named.contains_key(name) || self.at.contains_key(name)
    }

    /// Returns the text of an override by its path.
    pub(super) fn text_at(&self, path: &str) -> Option<&str> {
        self.at.get(path).map(|given| given.text.as_str())
    }

    /// Returns the override of a setting.
    pub(super) fn get(&self, outside: &Outside) -> GivenSetting<'_> {
        GivenSetting::new(*outside, outside.name().and_then(|name| self.named.get(name)))
    }

    /// Returns the override of the setting at `path`, which may be one of the file only.
    pub(super) fn at(&self, outside: &Outside, path: &str) -> GivenSetting<'_> {
        match outside {
            Outside::No => GivenSetting::new(Outside::No, self.at.get(path)),
            outside => self.get(outside),
        }
    }

    /// Returns the label of the setting with this path, or the path itself.
    pub(super) fn name_of(&self, path: &str) -> String {
        let label = self.at.get(path).and_then(|given| given.label.clone());
        label.unwrap_or_else(|| path.to_owned())
    }

    /// True if a setting of this section is given by its path.
    pub(super) fn has_section(&self, path: &str) -> bool {
        self.at.keys().any(|key| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }
}

impl Outside {
    /// Returns its name in snake case.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Flag(name) | Self::HiddenFlag(name) | Self::Variable(name) => Some(name),
        }
    }

    pub(super) fn flag(&self) -> Option<String> {
        match self {
            Self::No | Self::Variable(_) => None,
            Self::Flag(name) | Self::HiddenFlag(name) => Some(name.replace('_', "-")),
        }
    }

    pub(super) fn variable(&self) -> Option<String> {
        self.name().map(|name| format!("WEIR_{}", name.to_uppercase()))
    }

    /// Returns the label of its mistakes: the flag and the variable.
    #[must_use]
    pub fn label(&self) -> String {
        match (self.flag(), self.variable()) {
            (Some(flag), Some(variable)) => format!("--{flag} or {variable}"),
            (_, variable) => variable.unwrap_or_default(),
        }
    }
}

/// The override of one setting, if there is one.
#[derive(Clone, Copy)]
pub(super) struct GivenSetting<'a> {
    outside: Outside,
    label: Option<&'a str>,
    /// The value as text.
    pub(super) text: Option<&'a str>,
}

impl<'a> GivenSetting<'a> {
    fn new(outside: Outside, given: Option<&'a GivenText>) -> Self {
        let text = given.map(|given| given.text.as_str());
        Self { outside, label: given.and_then(|given| given.label.as_deref()), text }
    }

    /// Parses the value, if it is given, and reports an error.
    pub(super) fn read<T>(
        &self,
        path: &str,
        report: &mut MistakeReport,
        parse: impl FnOnce(Scalar<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let scalar = Scalar { text: self.text?, quoted: false };
        parse(scalar).map_err(|reason| self.report(path, report, reason)).ok()
    }

    /// Reports a mistake of this setting.
    pub(super) fn report(&self, path: &str, report: &mut MistakeReport, reason: String) {
        let label = self.label.map_or_else(|| self.outside.label(), str::to_owned);
        report.setting(label, path, reason);
    }
}
