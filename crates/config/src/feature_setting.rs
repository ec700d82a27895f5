//! The settings of features: what the table is for those of the trunk.

use weir_units::Micros;

use super::fields::{MAX_PATH, Mapping};
use super::given::Outside;
use super::node_name;
use super::overrides::ConfigOverrides;
use super::table::{Applies, HeaderName, Setting, SettingKind as _, ValueKind};
use super::values::MAX_SECRET;

/// The settings of a section, or of a mapping in it.
#[derive(Debug)]
pub struct SettingGroup {
    /// The key of the mapping; empty for the section itself.
    pub name: &'static str,
    /// A description of one sentence.
    pub about: &'static str,
    /// The settings.
    pub settings: &'static [FeatureSetting],
}

/// A setting of a feature.
#[derive(Debug)]
pub struct FeatureSetting {
    /// The key of the setting in its section.
    pub key: &'static str,
    /// A description of one sentence, which the schema and `--help` show, too.
    pub about: &'static str,
    /// The default as a file would write it; empty if there is none.
    pub default: &'static str,
    /// The type of the value, with its bounds.
    pub form: SettingForm,
    /// The flag and the variable of the setting, if it has them.
    pub flag: Option<&'static str>,
    /// The time at which a change takes effect.
    pub applies: Applies,
    /// Additional text for the reference.
    pub more: &'static str,
}

/// The type of the value of a feature's setting.
#[derive(Debug, Clone, Copy)]
pub enum SettingForm {
    /// An address to listen on.
    Address,
    /// A path, with the text of the reference for its absence. In the file it is relative to the file's directory.
    File(&'static str),
    /// A whole number, with inclusive bounds.
    Count(u64, u64),
    /// A duration, with inclusive bounds.
    Span(Micros, Micros),
    /// The same, with a description that has the bounds already.
    DescribedSpan(Micros, Micros),
    /// A number of bytes, with inclusive bounds.
    Size(usize, usize),
    /// True or false.
    Switch,
    /// One of several words.
    Choice(&'static [&'static str]),
    /// The name of this node, and the text of the reference for its absence.
    NodeName(&'static str),
    /// A text of at most so many bytes, and the text of the reference for its absence.
    Text(usize, &'static str),
    /// A text of at most so many bytes that the section must have.
    NeededText(usize),
    /// The name of an HTTP header.
    HeaderName,
    /// A part of one.
    Part,
    /// A secret, and the text of the reference for its absence.
    Secret(&'static str),
    /// A form that `$defs` of the schema has under this name, and the text of the reference for its absence.
    Defined(&'static str, &'static str),
    /// A rate with at least 1 and at most so many in at most 100 years, and these bounds as a sentence.
    Rate(u64, &'static str),
}

impl FeatureSetting {
    /// Creates a setting of the file only, without a default, that applies at a restart.
    #[must_use]
    pub const fn new(key: &'static str, form: SettingForm, about: &'static str) -> Self {
        Self { key, about, default: "", form, flag: None, applies: Applies::AtRestart, more: "" }
    }

    /// Sets the default.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Gives it a flag and a variable.
    #[must_use]
    pub const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    /// Adds a text for the reference.
    #[must_use]
    pub const fn more(self, more: &'static str) -> Self {
        Self { more, ..self }
    }

    /// Lets a reload apply it.
    #[must_use]
    pub const fn at_reload(self) -> Self {
        Self { applies: Applies::AtReload, ..self }
    }

    /// True if it is in a mapping of the file, or given by a flag, by a variable or by its path.
    pub(super) fn is_given(&self, fields: &Mapping<'_>, overrides: &ConfigOverrides) -> bool {
        let path = fields.path_of(self.key);
        fields.has(self.key) || overrides.given.at(&self.outside(), &path).text.is_some()
    }

    pub(super) fn outside(&self) -> Outside {
        self.flag.map_or(Outside::No, Outside::Flag)
    }

    pub(super) fn row(&self) -> Setting {
        let text = |max| ValueKind::Text(1, max);
        let (value_name, values, unset) = match self.form {
            SettingForm::Address => ("ADDRESS", text(MAX_PATH), ""),
            SettingForm::File(unset) => ("PATH", text(MAX_PATH), unset),
            SettingForm::Count(min, max) => ("NUMBER", ValueKind::Count(min, max), ""),
            SettingForm::Span(min, max) => ("DURATION", ValueKind::Span(min, max), ""),
            SettingForm::DescribedSpan(..) => ("DURATION", ValueKind::Duration, ""),
            SettingForm::Size(min, max) => ("SIZE", ValueKind::Size(min, max), ""),
            SettingForm::Switch => ("BOOL", ValueKind::Boolean, ""),
            SettingForm::Choice(words) => ("WORD", ValueKind::Choice(words), ""),
            SettingForm::Rate(..) => ("RATE", ValueKind::Rate, ""),
            SettingForm::NodeName(unset) => ("NAME", ValueKind::Pattern(node_name::PATTERN), unset),
            SettingForm::Text(max, unset) => ("NAME", text(max), unset),
            SettingForm::NeededText(max) => ("NAME", text(max), "needed"),
            SettingForm::HeaderName => ("NAME", HeaderName.values(), ""),
            SettingForm::Part => ("PART", ValueKind::Part, ""),
            SettingForm::Secret(unset) => ("TEXT", text(MAX_SECRET), unset),
            SettingForm::Defined(name, unset) => ("", ValueKind::Defined(name), unset),
        };
        let mut row = Setting { value_name, unset, ..Setting::other(self.key, self.about, values) };
        row.default = (!self.default.is_empty()).then(|| self.default.to_owned());
        row.more = self.more;
        row.required = matches!(self.form, SettingForm::NeededText(_));
        match self.form {
            SettingForm::Address => row.bounds = String::new(),
            SettingForm::File(_) => row.bounds = format!("path of {}", row.bounds),
            SettingForm::NodeName(_) => row.bounds = node_name::bounds(),
            SettingForm::HeaderName => row.bounds = HeaderName.bounds(),
            _ => {}
        }
        row.outside = self.outside();
        row.applies = self.applies;
        row
    }
}
