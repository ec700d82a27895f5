//! One setting: typed, for the reader; and described, for schema, flags and reference.

use super::super::given::Outside;
use super::SettingKind;
use super::value_kind::ValueKind;

/// A typed setting.
pub(crate) struct Entry<K: SettingKind> {
    /// The key of the setting in its section.
    pub(crate) key: &'static str,
    /// A description of one sentence, which the schema and `--help` show, too.
    pub(crate) about: &'static str,
    /// The default.
    pub(crate) default: K::Value,
    /// The type of the value, with its bounds.
    pub(crate) kind: K,
    /// The flag and the variable of the setting, if it has them.
    pub(crate) outside: Outside,
    /// The time at which a change takes effect.
    pub(crate) applies: Applies,
    /// Additional text for the reference: the rationale, and relations to other keys.
    pub(crate) more: &'static str,
}

/// A setting's description.
#[derive(Debug)]
pub struct Setting {
    /// The key of the setting in its section.
    pub key: &'static str,
    /// A description of one sentence.
    pub about: &'static str,
    /// Additional text for the reference.
    pub more: &'static str,
    /// The default as a file would write it, if there is one.
    pub default: Option<String>,
    /// The reference's text in place of a default.
    pub(crate) unset: &'static str,
    /// The bounds, as formatted in the reference.
    pub bounds: String,
    /// The value's placeholder in `--help`.
    pub value_name: &'static str,
    /// The type of the value.
    pub values: ValueKind,
    /// True if the section requires it.
    pub(crate) required: bool,
    /// The flag and the variable of the setting, if it has them.
    pub outside: Outside,
    /// The time at which a change takes effect.
    pub applies: Applies,
}

/// The time at which a change takes effect. A reload applies `AtReload`, and names the changes that are `AtRestart`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Something created at startup depends on it: a listener, a worker, a route, the store.
    AtRestart,
    /// A reload applies it.
    AtReload,
}

impl<K: SettingKind> Entry<K> {
    /// Creates a setting of the file only that applies at a restart.
    pub(crate) const fn new(key: &'static str, default: K::Value, kind: K) -> Self {
        Self { key, about: "", default, kind, outside: Outside::No, applies: Applies::AtRestart, more: "" }
    }

    /// Sets the description.
    pub(crate) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Gives it a flag and a variable.
    pub(crate) const fn flag(self, flag: &'static str) -> Self {
        self.outside(Outside::Flag(flag))
    }

    /// Gives it another way to be set outside of the file.
    pub(crate) const fn outside(mut self, outside: Outside) -> Self {
        self.outside = outside;
        self
    }

    /// Sets the time at which a change takes effect.
    pub(crate) const fn applies(mut self, applies: Applies) -> Self {
        self.applies = applies;
        self
    }

    /// Adds a text for the reference.
    pub(crate) const fn more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    /// Returns its description.
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
    /// Creates the description of a key that is a section, or has a custom reader.
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

    /// Returns the flag, without `--`.
    #[must_use]
    pub fn flag(&self) -> Option<String> {
        self.outside.flag()
    }

    /// Returns the variable.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        self.outside.variable()
    }
}
