//! Overrides from flags and environment variables, which take precedence over the file.
//!
//! This module does not read flags or the environment. The caller passes the values by the names of the table.

use std::collections::BTreeMap;

use super::errors::MistakeReport;
use super::stores::TlsCheck;
use super::table::{Outside, settings};
use super::tls::PortTlsCheck;
use super::values::Scalar;

/// Overrides of the file's values, as text; and the TLS check, which this crate cannot do itself.
///
/// `drain_timeout` is the flag `--drain-timeout` or the variable `WEIR_DRAIN_TIMEOUT`, and so on; mistakes are
/// reported under these names.
#[derive(Clone, Default)]
pub struct ConfigOverrides {
    given: BTreeMap<String, String>,
    /// Validates the certificates of `store.redis.tls`. Without it, only the existence of the files is checked.
    tls_check: Option<TlsCheck>,
    /// The same for the certificates of our own ports.
    port_tls_check: Option<PortTlsCheck>,
}

impl std::fmt::Debug for ConfigOverrides {
    /// Shows the names without the values: one of them is a secret, and addresses may contain others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.given.keys()).finish()
    }
}

impl ConfigOverrides {
    /// Adds an override by its [`Outside::name`]. An unknown name is a mistake of the configuration.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<String>) -> Self {
        self.given.insert(name.to_owned(), text.into());
        self
    }

    /// Sets the TLS check.
    #[must_use]
    pub fn with_tls_check(self, check: TlsCheck) -> Self {
        Self { tls_check: Some(check), ..self }
    }

    /// Sets the check of the certificates of our own ports.
    #[must_use]
    pub fn with_port_tls_check(self, check: PortTlsCheck) -> Self {
        Self { port_tls_check: Some(check), ..self }
    }

    /// Returns the TLS checks alone, without overrides.
    pub(super) fn without_values(&self) -> Self {
        Self { given: BTreeMap::new(), ..self.clone() }
    }

    /// Returns the TLS check.
    pub(super) fn tls_check(&self) -> Option<TlsCheck> {
        self.tls_check
    }

    /// Returns the check of the certificates of our own ports.
    pub(super) fn port_tls_check(&self) -> Option<PortTlsCheck> {
        self.port_tls_check
    }

    /// Returns the override of a setting.
    pub(super) fn of(&self, outside: &Outside) -> GivenSetting<'_> {
        let text = outside.name().and_then(|name| self.given.get(name));
        GivenSetting { outside: *outside, text: text.map(String::as_str) }
    }

    /// Reports unknown names, which would have no effect.
    pub(super) fn report_unknown(&self, report: &mut MistakeReport) {
        let known: Vec<&str> = settings().iter().filter_map(|(_, setting)| setting.outside.name()).collect();
        for name in self.given.keys().filter(|name| !known.contains(&name.as_str())) {
            report.setting(name.clone(), "", "no setting has this name");
        }
    }
}

/// The override of one setting, if there is one.
#[derive(Clone, Copy)]
pub(super) struct GivenSetting<'a> {
    outside: Outside,
    /// The value as text.
    pub(super) text: Option<&'a str>,
}

impl GivenSetting<'_> {
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
        report.setting(self.outside.label(), path, reason);
    }
}
