//! Overrides from flags and environment variables, which take precedence over the file.
//!
//! This module does not read flags or the environment. The caller passes the values by the names of the table.

use std::any::Any;
use std::sync::Arc;

use super::errors::MistakeReport;
use super::expanded_from::VariableLookup;
use super::given::GivenSettings;
use super::stores::{TlsCheck, TlsError};
use super::table::{TlsConfig, settings};

/// Reads the files of a port as the server would, and returns every mistake in them.
pub type PortTlsCheck = fn(&TlsConfig) -> Vec<TlsError>;

/// Overrides of the file's values, as text; and the TLS check, which this crate cannot do itself.
///
/// `drain_timeout` is the flag `--drain-timeout` or the variable `WEIR_DRAIN_TIMEOUT`, and so on; mistakes are
/// reported under these names.
#[derive(Clone, Default)]
pub struct ConfigOverrides {
    /// The values.
    pub(super) given: GivenSettings,
    /// The password file of Redis may begin with the user and a colon.
    pub(super) user_in_password_file: bool,
    /// Keeps the strategies as the file writes them, whatever the file says of live control.
    pub(super) keeps_written: bool,
    /// Validates the certificates of `store.redis.tls`. Without it, only the existence of the files is checked.
    pub(super) tls_check: Option<TlsCheck>,
    /// The same for the certificates of our own ports.
    pub(super) port_tls_check: Option<PortTlsCheck>,
    /// Looks up the variables that values of the file name.
    pub(super) variables: Option<VariableLookup>,
    /// The sections that features read. Their readers use overrides, so the type is not named here.
    pub(super) extension: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for ConfigOverrides {
    /// Shows the names without the values: one of them is a secret, and addresses may contain others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.given.all().map(|(name, _)| name)).finish()
    }
}

impl ConfigOverrides {
    /// Adds an override by its [`Outside::name`](super::Outside::name). An unknown name is a mistake of the configuration.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<String>) -> Self {
        self.given.put(name, None, text.into());
        self
    }

    /// Adds an override by its [`Outside::name`](super::Outside::name), or by its path where it has none. Mistakes are reported under `label`.
    #[must_use]
    pub fn with_label(mut self, name: &str, label: &str, text: impl Into<String>) -> Self {
        self.given.put(name, Some(label), text.into());
        self
    }

    /// True if there is an override of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.given.has(name)
    }

    /// Returns the override of a setting by its path, if it was added under that.
    #[must_use]
    pub fn text_at(&self, path: &str) -> Option<&str> {
        self.given.text_at(path)
    }

    /// Lets the password file of Redis begin with the user and a colon.
    #[must_use]
    pub fn with_user_in_password_file(self) -> Self {
        Self { user_in_password_file: true, ..self }
    }

    /// Keeps the strategies as the file writes them, also if the file turns live control off.
    #[must_use]
    pub fn keeping_written(self) -> Self {
        Self { keeps_written: true, ..self }
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

    /// Returns the TLS checks alone, without overrides.
    pub(super) fn without_values(&self) -> Self {
        Self { given: GivenSettings::default(), ..self.clone() }
    }

    /// Reports unknown names, which would have no effect.
    /// `more` are those of features.
    pub(super) fn report_unknown(
        &self,
        more: impl Iterator<Item = &'static str>,
        report: &mut MistakeReport,
    ) {
        let settings = settings();
        let own = settings.iter().filter_map(|(_, setting)| setting.outside.name());
        let known: Vec<&str> = own.chain(more).collect();
        for name in self.given.names().filter(|name| !known.contains(name)) {
            report.setting(name.to_owned(), "", "no setting has this name");
        }
    }
}
