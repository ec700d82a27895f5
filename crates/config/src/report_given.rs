//! Reports the mistake of a setting where its value is given: by a variable or a flag, or in the file.

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::given::Outside;
use super::overrides::ConfigOverrides;

/// Reports a mistake of the setting `name` of `section`.
pub(super) fn report_given(
    (name, outside): (&str, &Outside),
    reason: &str,
    section: &Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) {
    let path = section.path_of(name);
    let given = overrides.given.at(outside, &path);
    match given.text {
        Some(_) => given.report(&path, report, reason.to_owned()),
        None => section.report(name, report, reason),
    }
}
