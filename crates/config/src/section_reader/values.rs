//! Values of further forms: texts, secrets, and those that strategies have too.

use std::path::Path;

use weir_core::strategy::{ApproximateNumbers, FailurePolicy};

use crate::feature_section::ShownText;
use crate::feature_setting::{FeatureSetting, SettingForm};
use crate::report_given::report_given;
use crate::secret::{missing, password};
use crate::stores::Secret;
use crate::table::{HeaderName, Ratio, SettingKind as _};
use crate::values::{Scalar, boolean, integer, quote, text_within};
use crate::{approximate, failure_policy};

use super::SectionReader;

impl SectionReader<'_, '_> {
    /// Reads a text; `None` if it is absent and has no default.
    pub fn text_of(&mut self, setting: &FeatureSetting) -> Option<String> {
        let (max, unset) = match setting.form {
            SettingForm::Text(max, unset) => (max, unset),
            SettingForm::NeededText(max) => (max, ""),
            _ => return None,
        };
        let text = self.value_or_default(setting, |scalar| text_within(scalar, max));
        self.show(setting, text.clone().unwrap_or_else(|| unset.to_owned()));
        text
    }

    /// Reads the name of a header.
    pub fn header_name(&mut self, setting: &FeatureSetting) -> String {
        let name = self.value_or_default(setting, |scalar| HeaderName.read(scalar)).unwrap_or_default();
        self.show(setting, name.clone());
        name
    }

    /// Reads a part of one.
    pub fn part(&mut self, setting: &FeatureSetting) -> f32 {
        let part = self.value_or_default(setting, |scalar| Ratio.read(scalar)).unwrap_or_default();
        self.show(setting, part.to_string());
        part
    }

    /// Reads a secret; `None` if it is absent.
    pub fn secret(&mut self, setting: &FeatureSetting) -> Option<Secret> {
        let secret = self.value(setting, password);
        self.show_as(setting, ShownText::Secret(secret.clone()));
        secret
    }

    /// Reads what a rule does while the store fails; `None` if it is absent.
    pub fn failure_policy(&mut self, key: &'static str) -> Option<FailurePolicy> {
        let in_memory = !self.has_redis();
        self.fields.take(key).and_then(|value| failure_policy::policy(&value, in_memory, self.report))
    }

    /// Reads the numbers of a limit that is counted on the nodes; `None` if they are absent.
    pub fn approximate(&mut self, key: &'static str) -> Option<ApproximateNumbers> {
        let in_memory = !self.has_redis();
        self.fields.take(key).and_then(|value| approximate::numbers(&value, in_memory, self.report))
    }

    /// Reads true or false; `None` if it is absent.
    pub fn optional_switch(&mut self, key: &'static str) -> Option<bool> {
        self.fields.read(key, self.report, boolean)
    }

    /// Reads a whole number of 32 bits; `None` if it is absent.
    pub fn small_number(&mut self, key: &'static str) -> Option<u32> {
        let small = |scalar: Scalar<'_>| {
            let number = integer(scalar)?;
            u32::try_from(number).map_err(|_| format!("{number} is too large: at most {}", u32::MAX))
        };
        self.fields.read(key, self.report, small)
    }

    /// Reads a whole number, or this word, which is `Some(None)`; `None` if it is absent.
    pub fn number_or(&mut self, key: &'static str, word: &str) -> Option<Option<u64>> {
        self.fields.read(key, self.report, |scalar| match scalar.text == word {
            true => Ok(None),
            false => integer(scalar).map(Some).map_err(|error| format!("{error}, or `{word}`")),
        })
    }

    /// Reads a text of at most `max` bytes that the mapping must have. The error of `parse` follows the text.
    pub fn needed_text<T>(
        &mut self,
        (key, help): (&'static str, &str),
        max: usize,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.fields.require(key, help, self.report)?;
        value.read(self.report, |scalar| {
            let text = text_within(scalar, max)?;
            parse(&text).map_err(|reason| format!("{}: {reason}", quote(&text)))
        })
    }

    /// True if the setting is in the file, or given by a flag, by a variable or by its path.
    #[must_use]
    pub fn is_given(&self, setting: &FeatureSetting) -> bool {
        setting.is_given(&self.fields, self.overrides)
    }

    /// Returns what was given by the path of a key that no file has.
    #[must_use]
    pub fn given_beside_files(&self, key: &str) -> Option<&str> {
        self.overrides.given.text_at(&self.fields.path_of(key))
    }

    /// Returns the name of a setting where it was given: its path, or what was translated into it.
    #[must_use]
    pub fn name_of(&self, key: &str) -> String {
        self.overrides.given.name_of(&self.fields.path_of(key))
    }

    /// Reports a mistake of a setting where its value is given.
    pub fn report_given(&mut self, setting: &FeatureSetting, reason: &str) {
        let name = (setting.key, &setting.outside());
        report_given(name, reason, &self.fields, self.overrides, self.report);
    }

    /// Reports a file that is not there; a check on another machine notes it.
    pub fn report_missing_file(&mut self, setting: &FeatureSetting, path: Option<&Path>) {
        let Some(reason) = path.and_then(missing) else { return };
        let (fields, overrides, name) = (&self.fields, self.overrides, (setting.key, &setting.outside()));
        self.report.missing(|report| report_given(name, &reason, fields, overrides, report));
    }
}
