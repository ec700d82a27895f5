//! The sections `server.tls` and `server.admin_tls`: one form.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::given::Outside;
use super::overrides::ConfigOverrides;
use super::report_given::report_given;
use super::secret::missing;
use super::table::{CrlConfig, Entry, TLS_FILE, TlsConfig};
use super::tls_words::ClientAuth;

/// [`TlsError::file`](super::TlsError::file) for files of `server.identity.trust_domains`.
pub const TRUST_DOMAINS: &str = "trust_domains";

/// Reads the section `name` of `server`, if it is there.
pub(super) fn port_tls(
    name: &'static str,
    trust_domains: Option<&BTreeMap<String, PathBuf>>,
    fields: &mut Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<TlsConfig> {
    let mut section = fields.section(name, report);
    if !section.is_present() && !overrides.given.has_section(&fields.path_of(name)) {
        return None;
    }
    let before = report.len();
    let client_auth = overrides.given.at(&Outside::No, &section.path_of("client_auth"));
    let has_client_auth = section.take("client_auth").is_some() || client_auth.text.is_some();
    let tls = TlsConfig::read(&mut section, &overrides.given, report);
    let mut crl = section.section("client_crl", report);
    let client_crl = CrlConfig::read(&mut crl, &overrides.given, report);
    let has_crl = crl.is_present();
    crl.finish(report);
    let cert_file = required("cert_file", &mut section, overrides, report);
    let key_file = required("key_file", &mut section, overrides, report);
    client_settings(&tls, has_client_auth, has_crl, &section, report);
    let tls = cert_file.zip(key_file).map(|(cert_file, key_file)| TlsConfig {
        cert_file,
        key_file,
        client_crl,
        trust_domains: trust_domains.cloned().unwrap_or_default(),
        ..tls
    });
    if let Some(tls) = tls.as_ref().filter(|_| report.len() == before) {
        for reason in check_files(tls, &section, overrides, report) {
            fields.report("identity", report, format!("trust_domains: {reason}"));
        }
    }
    section.finish(report);
    tls
}

/// Reports settings of client certificates that do not go together.
fn client_settings(
    tls: &TlsConfig,
    has_client_auth: bool,
    has_crl: bool,
    section: &Mapping<'_>,
    report: &mut MistakeReport,
) {
    if tls.client_auth != ClientAuth::None && tls.client_ca_file.is_none() {
        let reason = "needs `client_ca_file`: without authorities no certificate of a client is valid";
        section.report("client_auth", report, reason);
    }
    if tls.client_ca_file.is_some() && !has_client_auth {
        let reason = "needs `client_auth`: write `required` or `optional`; by default no client is asked";
        section.report("client_ca_file", report, reason);
    }
    if tls.client_san.is_some() && tls.client_ca_file.is_none() {
        section.report("client_san", report, "needs `client_ca_file`");
    }
    if tls.client_crl_file.is_some() && tls.client_ca_file.is_none() {
        section.report("client_crl_file", report, "needs `client_ca_file`");
    }
    if has_crl && tls.client_crl_file.is_none() {
        section.report("client_crl", report, "needs `client_crl_file`");
    }
}

fn required(
    key: &'static str,
    section: &mut Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<PathBuf> {
    let given = overrides.given.at(&Outside::No, &section.path_of(key));
    let is_given = section.take(key).is_some() || given.text.is_some();
    let path = section.value(Entry::new(key, None, TLS_FILE), &overrides.given, report);
    if !is_given && section.is_whole() {
        section.report(key, report, "is missing; a port with TLS needs a certificate and its key");
    }
    path
}

/// Reports files that are missing, or what is wrong in them. Returns the mistakes in files of `trust_domains`, which are
/// named elsewhere.
fn check_files(
    tls: &TlsConfig,
    section: &Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Vec<String> {
    let files = [
        ("cert_file", Some(&tls.cert_file)),
        ("key_file", Some(&tls.key_file)),
        ("client_ca_file", tls.client_ca_file.as_ref()),
        ("client_crl_file", tls.client_crl_file.as_ref()),
    ];
    let absent: Vec<(&str, String)> =
        files.into_iter().filter_map(|(name, path)| Some((name, missing(path?)?))).collect();
    for (name, reason) in &absent {
        report.missing(|report| report_given((name, &Outside::No), reason, section, overrides, report));
    }
    let has_domains = tls.trust_domains.values().all(|path| path.is_file());
    let check = overrides.port_tls_check.filter(|_| absent.is_empty() && has_domains);
    let errors = check.map(|check| check(tls)).unwrap_or_default();
    let (of_domains, own): (Vec<_>, Vec<_>) =
        errors.into_iter().partition(|error| error.file == TRUST_DOMAINS);
    for error in own {
        report_given((error.file, &Outside::No), &error.reason, section, overrides, report);
    }
    of_domains.into_iter().map(|error| error.reason).collect()
}
