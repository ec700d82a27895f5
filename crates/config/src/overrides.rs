//! Single values from flags and environment variables, which go before those of the file.
//!
//! Nothing here reads a flag or the environment: the caller hands over what it found, by the names of the table.

use std::collections::BTreeMap;

use super::errors::MistakeReport;
use super::stores::TlsCheck;
use super::table::{Outside, settings};
use super::values::Scalar;

/// Values that go before those of the file, as they were written; and what the reader cannot do itself.
///
/// `drain_timeout` is the flag `--drain-timeout` or the variable `WEIR_DRAIN_TIMEOUT`, and so on; mistakes are reported
/// under these names.
#[derive(Clone, Default)]
pub struct ConfigOverrides {
    given: BTreeMap<String, String>,
    /// Looks into the certificates of `store.redis.tls`. Without it, the files need only be there.
    tls_check: Option<TlsCheck>,
}

impl std::fmt::Debug for ConfigOverrides {
    /// Which are given, without what they say: one of them is a secret and addresses may hold others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.given.keys()).finish()
    }
}

impl ConfigOverrides {
    /// The same with the setting of a name, as [`Outside::name`] has it. A name that no setting has is a mistake of the
    /// configuration.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<String>) -> Self {
        self.given.insert(name.to_owned(), text.into());
        self
    }

    /// The same with a look into certificates.
    #[must_use]
    pub fn with_tls_check(self, check: TlsCheck) -> Self {
        Self { tls_check: Some(check), ..self }
    }

    /// The look into certificates, and nothing that is given.
    pub(super) fn without_values(&self) -> Self {
        Self { given: BTreeMap::new(), tls_check: self.tls_check }
    }

    /// The look into certificates.
    pub(super) fn tls_check(&self) -> Option<TlsCheck> {
        self.tls_check
    }

    /// What is given for a setting.
    pub(super) fn of(&self, outside: &Outside) -> GivenSetting<'_> {
        let text = outside.name().and_then(|name| self.given.get(name));
        GivenSetting { outside: *outside, text: text.map(String::as_str) }
    }

    /// Reports names that no setting has: they would change nothing.
    pub(super) fn report_unknown(&self, report: &mut MistakeReport) {
        let known: Vec<&str> = settings().iter().filter_map(|(_, setting)| setting.outside.name()).collect();
        for name in self.given.keys().filter(|name| !known.contains(&name.as_str())) {
            report.setting(name.clone(), "", "no setting has this name");
        }
    }
}

/// One value that may have been given.
#[derive(Clone, Copy)]
pub(super) struct GivenSetting<'a> {
    outside: Outside,
    /// What was given.
    pub(super) text: Option<&'a str>,
}

impl GivenSetting<'_> {
    /// What it says, if it was given and `parse` accepts it.
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
        report.setting(self.outside.label(), path, reason);
    }
}
