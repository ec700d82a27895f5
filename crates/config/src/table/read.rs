//! Reading of one setting of the table.

use super::super::errors::MistakeReport;
use super::super::fields::Mapping;
use super::super::given::GivenSettings;
use super::{Entry, SettingKind};

impl Mapping<'_> {
    /// Reads a setting, if it is given. A flag or a variable overrides the file, but the file's value is validated in
    /// any case, so that an override does not hide a mistake.
    pub(crate) fn setting<K: SettingKind>(
        &mut self,
        entry: &Entry<K>,
        given: &GivenSettings,
        report: &mut MistakeReport,
    ) -> Option<K::Value> {
        let from_file = self.read(entry.key, report, |scalar| entry.kind.read(scalar));
        let at = self.take(entry.key).map(|value| value.at()).unwrap_or_default();
        let from_file = from_file.map(|value| entry.kind.in_file(value, at, report));
        let path = self.path_of(entry.key);
        let outside = given.at(&entry.outside, &path);
        outside.read(&path, report, |scalar| entry.kind.read(scalar)).or(from_file)
    }

    /// Reads a setting; the default applies if it is absent or mistaken.
    pub(crate) fn value<K: SettingKind>(
        &mut self,
        entry: Entry<K>,
        given: &GivenSettings,
        report: &mut MistakeReport,
    ) -> K::Value {
        self.setting(&entry, given, report).unwrap_or(entry.default)
    }
}
