//! Single values from flags and environment variables, which go before those of the file.
//!
//! Nothing here reads a flag or the environment: the caller fills in [`ConfigOverrides`].

use super::errors::MistakeReport;
use super::stores::TlsCheck;
use super::values::Scalar;

/// Values that go before those of the file, as they were written; and what the reader cannot do itself.
///
/// Field `drain_timeout` is the flag `--drain-timeout` or the variable `WEIR_DRAIN_TIMEOUT`, and so
/// on; mistakes are reported under these names.
#[derive(Clone, Default)]
pub struct ConfigOverrides {
    /// `server.listen`.
    pub listen: Option<String>,
    /// `server.listen_mode`.
    pub listen_mode: Option<String>,
    /// `server.admin`.
    pub admin: Option<String>,
    /// `server.transport`.
    pub transport: Option<String>,
    /// `server.workers`.
    pub workers: Option<String>,
    /// `server.reflection`.
    pub reflection: Option<String>,
    /// `server.admin_service`.
    pub admin_service: Option<String>,
    /// `server.inline_limits`.
    pub inline_limits: Option<String>,
    /// `server.ready_needs_store`.
    pub ready_needs_store: Option<String>,
    /// `server.drain_delay`.
    pub drain_delay: Option<String>,
    /// `server.drain_timeout`.
    pub drain_timeout: Option<String>,
    /// `memory`, or addresses of Redis with commas between them.
    pub store: Option<String>,
    /// `store.memory.budget`.
    pub budget: Option<String>,
    /// `store.memory.when_full`.
    pub when_full: Option<String>,
    /// `store.redis.topology`.
    pub topology: Option<String>,
    /// `store.redis.deadline`.
    pub deadline: Option<String>,
    /// `store.redis.connect_timeout`.
    pub connect_timeout: Option<String>,
    /// `store.redis.max_waiting`.
    pub max_waiting: Option<String>,
    /// `store.redis.username`.
    pub redis_username: Option<String>,
    /// `store.redis.password`; a variable only: a command line can be seen by others.
    pub redis_password: Option<String>,
    /// `store.redis.password_file`.
    pub redis_password_file: Option<String>,
    /// `store.redis.tls.ca_file`.
    pub redis_ca_file: Option<String>,
    /// `store.redis.tls.cert_file`.
    pub redis_cert_file: Option<String>,
    /// `store.redis.tls.key_file`.
    pub redis_key_file: Option<String>,
    /// `store.redis.master_name`.
    pub redis_master_name: Option<String>,
    /// `store.redis.sentinel_username`.
    pub redis_sentinel_username: Option<String>,
    /// `store.redis.sentinel_password`; a variable only.
    pub redis_sentinel_password: Option<String>,
    /// `store.redis.sentinel_password_file`.
    pub redis_sentinel_password_file: Option<String>,
    /// `store.key_secret`.
    pub key_secret: Option<String>,
    /// `envoy.config`.
    pub envoy_config: Option<String>,
    /// `envoy.merge_domains`.
    pub envoy_merge_domains: Option<String>,
    /// Looks into the certificates of `store.redis.tls`. Without it, the files need only be there.
    pub tls_check: Option<TlsCheck>,
}

impl std::fmt::Debug for ConfigOverrides {
    /// Which are given, without what they say: one of them is a secret and addresses may hold others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let given = self.all().into_iter().filter(|setting| setting.text.is_some());
        f.debug_set().entries(given.map(|setting| setting.name)).finish()
    }
}

impl ConfigOverrides {
    /// The setting of a name. Each field is listed once, here.
    pub(super) fn of(&self, name: &str) -> Setting<'_> {
        let unknown = Setting { name: "", text: None };
        self.all().into_iter().find(|setting| setting.name == name).unwrap_or(unknown)
    }

    fn all(&self) -> [Setting<'_>; 31] {
        [
            ("listen", &self.listen),
            ("listen_mode", &self.listen_mode),
            ("admin", &self.admin),
            ("transport", &self.transport),
            ("workers", &self.workers),
            ("reflection", &self.reflection),
            ("admin_service", &self.admin_service),
            ("inline_limits", &self.inline_limits),
            ("ready_needs_store", &self.ready_needs_store),
            ("drain_delay", &self.drain_delay),
            ("drain_timeout", &self.drain_timeout),
            ("store", &self.store),
            ("budget", &self.budget),
            ("when_full", &self.when_full),
            ("topology", &self.topology),
            ("deadline", &self.deadline),
            ("connect_timeout", &self.connect_timeout),
            ("max_waiting", &self.max_waiting),
            ("redis_username", &self.redis_username),
            ("redis_password", &self.redis_password),
            ("redis_password_file", &self.redis_password_file),
            ("redis_ca_file", &self.redis_ca_file),
            ("redis_cert_file", &self.redis_cert_file),
            ("redis_key_file", &self.redis_key_file),
            ("redis_master_name", &self.redis_master_name),
            ("redis_sentinel_username", &self.redis_sentinel_username),
            ("redis_sentinel_password", &self.redis_sentinel_password),
            ("redis_sentinel_password_file", &self.redis_sentinel_password_file),
            ("key_secret", &self.key_secret),
            ("envoy_config", &self.envoy_config),
            ("envoy_merge_domains", &self.envoy_merge_domains),
        ]
        .map(|(name, text)| Setting { name, text: text.as_deref() })
    }
}

/// One value that may have been given.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    name: &'static str,
    /// What was given.
    pub(super) text: Option<&'a str>,
}

impl Setting<'_> {
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
        let (flag, variable) = (self.name.replace('_', "-"), self.name.to_uppercase());
        let label = if self.name.ends_with("_password") {
            format!("WEIR_{variable}")
        } else {
            format!("--{flag} or WEIR_{variable}")
        };
        report.setting(label, path, reason);
    }
}
