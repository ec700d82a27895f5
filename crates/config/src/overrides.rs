//! Overrides from flags and environment variables, which take precedence over the file.
//!
//! This module does not read flags or the environment. The caller passes the values by the names of the table.

use std::collections::BTreeMap;

use super::envoy_layout::EnvoyLayout;
use super::errors::MistakeReport;
use super::expanded_from::VariableLookup;
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
    /// By [`Outside::name`].
    given: BTreeMap<String, GivenText>,
    /// By path, for settings of the file only.
    at: BTreeMap<String, GivenText>,
    /// Which of Envoy's files count.
    envoy_layout: EnvoyLayout,
    /// The password file of Redis may begin with the user and a colon.
    user_in_password_file: bool,
    /// Keeps the strategies as the file writes them, whatever the file says of live control.
    keeps_written: bool,
    /// Validates the certificates of `store.redis.tls`. Without it, only the existence of the files is checked.
    tls_check: Option<TlsCheck>,
    /// The same for the certificates of our own ports.
    port_tls_check: Option<PortTlsCheck>,
    /// Looks up the variables that values of the file name.
    variables: Option<VariableLookup>,
}

/// The value of an override.
#[derive(Clone)]
struct GivenText {
    text: String,
    /// Label of mistakes, if not the flag and the variable.
    label: Option<String>,
}

impl std::fmt::Debug for ConfigOverrides {
    /// Shows the names without the values: one of them is a secret, and addresses may contain others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.given.keys()).entries(self.at.keys()).finish()
    }
}

impl ConfigOverrides {
    /// Adds an override by its [`Outside::name`]. An unknown name is a mistake of the configuration.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<String>) -> Self {
        self.given.insert(name.to_owned(), GivenText { text: text.into(), label: None });
        self
    }

    /// Adds an override by its [`Outside::name`], or by its path where it has none. Mistakes are reported under `label`.
    #[must_use]
    pub fn with_label(mut self, name: &str, label: &str, text: impl Into<String>) -> Self {
        let to = if name.contains('.') { &mut self.at } else { &mut self.given };
        to.insert(name.to_owned(), GivenText { text: text.into(), label: Some(label.to_owned()) });
        self
    }

    /// All overrides with their texts.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().chain(&self.at).map(|(name, given)| (name.as_str(), given.text.as_str()))
    }

    /// True if there is an override of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name) || self.at.contains_key(name)
    }

    /// Returns the text of an override by its path.
    pub(super) fn text_at(&self, path: &str) -> Option<&str> {
        self.at.get(path).map(|given| given.text.as_str())
    }

    /// Sets which files of `envoy.config` count.
    #[must_use]
    pub fn with_envoy_layout(self, envoy_layout: EnvoyLayout) -> Self {
        Self { envoy_layout, ..self }
    }

    /// Returns which files of `envoy.config` count.
    pub(super) fn envoy_layout(&self) -> &EnvoyLayout {
        &self.envoy_layout
    }

    /// Lets the password file of Redis begin with the user and a colon.
    #[must_use]
    pub fn with_user_in_password_file(self) -> Self {
        Self { user_in_password_file: true, ..self }
    }

    /// True if the password file of Redis may begin with the user and a colon.
    pub(super) fn has_user_in_password_file(&self) -> bool {
        self.user_in_password_file
    }

    /// Keeps the strategies as the file writes them, also if the file turns live control off.
    #[must_use]
    pub fn keeping_written(self) -> Self {
        Self { keeps_written: true, ..self }
    }

    /// True if the strategies are kept as the file writes them.
    pub(super) fn keeps_written(&self) -> bool {
        self.keeps_written
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

    /// Sets what looks up the variables that values of the file name. Without it, none is set.
    #[must_use]
    pub fn with_variables(self, lookup: VariableLookup) -> Self {
        Self { variables: Some(lookup), ..self }
    }

    /// Returns what looks up variables.
    pub(super) fn variables(&self) -> Option<VariableLookup> {
        self.variables
    }

    /// Returns the TLS checks alone, without overrides.
    pub(super) fn without_values(&self) -> Self {
        Self { given: BTreeMap::new(), at: BTreeMap::new(), ..self.clone() }
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
        GivenSetting::new(*outside, outside.name().and_then(|name| self.given.get(name)))
    }

    /// Returns the override of the setting at `path`, which may be one of the file only.
    pub(super) fn at(&self, outside: &Outside, path: &str) -> GivenSetting<'_> {
        match outside {
            Outside::No => GivenSetting::new(Outside::No, self.at.get(path)),
            outside => self.of(outside),
        }
    }

    /// True if a setting of this section is given by its path.
    pub(super) fn has_section(&self, path: &str) -> bool {
        self.at.keys().any(|key| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Reports unknown names, which would have no effect.
    pub(super) fn report_unknown(&self, report: &mut MistakeReport) {
        let settings = settings();
        let known: Vec<&str> = settings.iter().filter_map(|(_, setting)| setting.outside.name()).collect();
        for name in self.given.keys().filter(|name| !known.contains(&name.as_str())) {
            report.setting(name.clone(), "", "no setting has this name");
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
