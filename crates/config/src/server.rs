//! The `server` section: the keys of the table, and checks across them.

use std::path::Path;

use super::ListenAddress;
use super::errors::MistakeReport;
use super::exposure::exposed;
use super::fields::Mapping;
use super::given::Outside;
use super::identity::{IdentityConfig, identity};
use super::listen::same_address;
use super::overrides::ConfigOverrides;
use super::table::{AdminPath, MAX_BATCH_BYTES, Plaintext, ServerConfig, ServerLimits, TlsConfig};
use super::tls::port_tls;
use super::tls_words::ClientAuth;
use super::values::{Scalar, choice, quote, text_within};

/// Reads the section, with the settings that override it.
pub(super) fn server(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> ServerConfig {
    let mut server = ServerConfig::read(&mut fields, &overrides.given, report);
    server.identity = identity(fields.section("identity", report), report);
    server.admin_open = admin_open(&mut fields, report);
    server.admin_hosts = admin_hosts(&mut fields, report);
    server.limits = limits(fields.section("limits", report), overrides, report);
    let domains = server.identity.as_ref().map(|identity| &identity.trust_domains);
    let domains = domains.filter(|domains| !domains.is_empty());
    server.tls = port_tls("tls", domains, &mut fields, overrides, report);
    server.admin_tls = port_tls("admin_tls", domains, &mut fields, overrides, report);
    server.control_tls = port_tls("control_tls", domains, &mut fields, overrides, report);
    operations(&server, &fields, report);
    let asks = |tls: &Option<TlsConfig>| tls.as_ref().is_some_and(|tls| tls.client_auth != ClientAuth::None);
    let none_asks = [&server.tls, &server.admin_tls, &server.control_tls].into_iter().all(|tls| !asks(tls));
    if domains.is_some() && none_asks {
        let reason = "trust_domains needs `client_auth` of a port: they say which authorities may issue certificates of clients";
        fields.report("identity", report, reason);
    }
    if server.tls.is_some() && matches!(server.listen, ListenAddress::Unix(_)) {
        let reason = "is for ports: a Unix socket has no TLS, and file modes say who may connect";
        fields.report("tls", report, reason);
    }
    let presents = |identity: &IdentityConfig| identity.tokens_file.is_some() || !identity.jwt.is_empty();
    if server.identity.as_ref().is_some_and(presents) && server.plaintext == Plaintext::Warned {
        for port in exposed(&server) {
            let reason = format!(
                "{port} has no TLS: whoever is on the way reads the tokens; use TLS, or write `plaintext: intended` if a \
                 mesh in front has it"
            );
            fields.report("identity", report, reason);
        }
    }
    if server.listen == ListenAddress::Tcp(server.admin) && server.admin.port() != 0 {
        let reason = format!("{} is the address of `listen` too; each needs its own", server.admin);
        let given =
            [Outside::Flag("admin"), Outside::Flag("listen")].map(|outside| overrides.given.get(&outside));
        match given.into_iter().find(|given| given.text.is_some()) {
            Some(given) => given.report(&fields.path_of("admin"), report, reason),
            None => fields.report("admin", report, reason),
        }
    }
    fields.finish(report);
    server
}

impl ServerConfig {
    /// The file of the audit; `None` is standard output.
    #[must_use]
    pub fn audit_path(&self) -> Option<&Path> {
        (self.audit_file != Path::new("-")).then_some(&self.audit_file)
    }
}

/// Checks the port of operators.
fn operations(server: &ServerConfig, fields: &Mapping<'_>, report: &mut MistakeReport) {
    let Some(address) = &server.control_listen else {
        if server.control_tls.is_some() {
            fields.report("control_tls", report, "needs `control_listen`: it is the TLS of that address");
        }
        return;
    };
    if !server.control && !server.admin_service {
        let reason = "nothing is served there; add `control: true` or `admin_service: true`";
        fields.report("control_listen", report, reason);
    }
    for (name, other) in [("listen", &server.listen), ("admin", &ListenAddress::Tcp(server.admin))] {
        if same_address(address, other) {
            let reason = format!("{address} is the address of `{name}` too; each needs its own");
            fields.report("control_listen", report, reason);
        }
    }
    if server.control_tls.is_some() && matches!(address, ListenAddress::Unix(_)) {
        let reason = "is for ports: a Unix socket has no TLS, and file modes say who may connect";
        fields.report("control_tls", report, reason);
    }
}

/// Paths of the admin port that can be open to everybody.
const OPEN_PATHS: [(&str, AdminPath); 2] = [("metrics", AdminPath::Metrics), ("ui_data", AdminPath::UiData)];

/// The longest name of a host, in bytes.
const MAX_HOST: usize = 255;

fn admin_open(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Vec<AdminPath> {
    let items = fields.take("admin_open").and_then(|value| value.items(report)).unwrap_or_default();
    items.iter().filter_map(|item| item.read(report, |s| choice(s, &OPEN_PATHS))).collect()
}

fn admin_hosts(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Vec<String> {
    let items = fields.take("admin_hosts").and_then(|value| value.items(report)).unwrap_or_default();
    let host = |s: Scalar<'_>| {
        let text = text_within(s, MAX_HOST)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if text.bytes().all(is_plain) {
            return Ok(text.to_ascii_lowercase());
        }
        Err(format!("{} is no name of a host, such as weir.example; it has no port", quote(&text)))
    };
    items.iter().filter_map(|item| item.read(report, host)).collect()
}

/// Reads the `server.limits` section.
fn limits(mut fields: Mapping<'_>, overrides: &ConfigOverrides, report: &mut MistakeReport) -> ServerLimits {
    let limits = ServerLimits::read(&mut fields, &overrides.given, report);
    let largest = limits.max_message_bytes.max(MAX_BATCH_BYTES);
    if limits.max_buffered_bytes < 2 * largest {
        let reason = format!(
            "{} bytes are less than twice the largest message, which may have {largest}: set at least {}",
            limits.max_buffered_bytes,
            2 * largest
        );
        fields.report("max_buffered_bytes", report, reason);
    }
    fields.finish(report);
    limits
}
