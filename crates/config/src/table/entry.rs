//! One setting: as the reader sees it, and as those see it who describe it.

use super::super::schema::ValueKind;
use super::SettingKind;

/// One setting, typed.
pub(crate) struct Entry<K: SettingKind> {
    /// Its key in the section.
    pub(crate) key: &'static str,
    /// One sentence: the schema and `--help` have it too.
    pub(crate) about: &'static str,
    /// The value where nobody gives one.
    pub(crate) default: K::Value,
    /// What the value may be, with its bounds.
    pub(crate) kind: K,
    /// Whether it has a flag and a variable.
    pub(crate) outside: Outside,
    /// When a change applies.
    pub(crate) applies: Applies,
    /// What the reference says besides: the reason, and how it goes with other keys.
    pub(crate) more: &'static str,
}

/// One setting, described.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the section.
    pub key: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// What the reference says besides.
    pub more: &'static str,
    /// The default as a file would write it, if there is one.
    pub default: Option<String>,
    /// What the reference says where there is none.
    pub(crate) unset: &'static str,
    /// The bounds, as the reference says them.
    pub bounds: String,
    /// What `--help` calls a value.
    pub value_name: &'static str,
    /// What the value may be.
    pub(crate) values: ValueKind,
    /// Whether the section is nothing without it.
    pub(crate) required: bool,
    /// Whether it has a flag and a variable.
    pub outside: Outside,
    /// When a change applies.
    pub applies: Applies,
}

/// Whether a value can be given outside of the file. The name has `_` between its words: `drain_timeout` is the
/// variable `WEIR_DRAIN_TIMEOUT` and the flag `--drain-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// In the file only: nodes of one deployment do not differ in it.
    No,
    /// As a flag and as a variable.
    Flag(&'static str),
    /// The same, and `--help` does not show what the variable holds.
    HiddenFlag(&'static str),
    /// As a variable only: everybody on the machine can read a command line.
    Variable(&'static str),
}

/// When a change applies. Today every change needs a restart, because the file is read at the start only. A reload may
/// apply `AtReload`, and must report `AtRestart`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// What exists from the start depends on it: a listener, a worker, a route, the store.
    AtRestart,
    /// It is looked at again and again.
    AtReload,
}

impl<K: SettingKind> Entry<K> {
    /// The entry for those who describe it.
    pub(crate) fn row(&self) -> Setting {
        Setting {
            key: self.key,
            about: self.about.trim(),
            more: self.more,
            default: self.kind.write(&self.default),
            unset: self.kind.unset(),
            bounds: self.kind.bounds(),
            value_name: K::NAME,
            values: self.kind.values(),
            required: false,
            outside: self.outside,
            applies: self.applies,
        }
    }
}

impl Setting {
    /// A key that is a section of its own, or is read in a way of its own.
    pub(crate) fn other(key: &'static str, about: &'static str, values: ValueKind) -> Self {
        Self {
            key,
            about,
            more: "",
            default: None,
            unset: "",
            bounds: values.bounds(),
            value_name: "",
            values,
            required: false,
            outside: Outside::No,
            applies: Applies::AtRestart,
        }
    }

    /// The flag, without `--`.
    #[must_use]
    pub fn flag(&self) -> Option<String> {
        self.outside.flag()
    }

    /// The variable.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        self.outside.variable()
    }
}

impl Outside {
    /// What it is called, with `_` between the words.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Flag(name) | Self::HiddenFlag(name) | Self::Variable(name) => Some(name),
        }
    }

    fn flag(&self) -> Option<String> {
        match self {
            Self::No | Self::Variable(_) => None,
            Self::Flag(name) | Self::HiddenFlag(name) => Some(name.replace('_', "-")),
        }
    }

    fn variable(&self) -> Option<String> {
        self.name().map(|name| format!("WEIR_{}", name.to_uppercase()))
    }

    /// How a mistake is labelled: by what people type.
    pub(crate) fn label(&self) -> String {
        match (self.flag(), self.variable()) {
            (Some(flag), Some(variable)) => format!("--{flag} or {variable}"),
            (_, variable) => variable.unwrap_or_default(),
        }
    }
}
