//! The `server` section: the keys of the table, and checks across them.

use super::ListenAddress;
use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::table::{MAX_BATCH_BYTES, Outside, ServerConfig, ServerLimits};
use super::tls::port_tls;

/// Reads the section, with the settings that override it.
pub(super) fn server(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> ServerConfig {
    let mut server = ServerConfig::read(&mut fields, overrides, report);
    server.limits = limits(fields.section("limits", report), overrides, report);
    server.tls = port_tls("tls", &mut fields, overrides, report);
    server.admin_tls = port_tls("admin_tls", &mut fields, overrides, report);
    if server.tls.is_some() && matches!(server.listen, ListenAddress::Unix(_)) {
        let reason = "is for ports: a Unix socket has no TLS, and file modes say who may connect";
        fields.report("tls", report, reason);
    }
    if server.listen == ListenAddress::Tcp(server.admin) && server.admin.port() != 0 {
        let reason = format!("{} is the address of `listen` too; each needs its own", server.admin);
        let given = [Outside::Flag("admin"), Outside::Flag("listen")].map(|outside| overrides.of(&outside));
        match given.into_iter().find(|given| given.text.is_some()) {
            Some(given) => given.report(&fields.path_of("admin"), report, reason),
            None => fields.report("admin", report, reason),
        }
    }
    fields.finish(report);
    server
}

/// Reads the `server.limits` section.
fn limits(mut fields: Mapping<'_>, overrides: &ConfigOverrides, report: &mut MistakeReport) -> ServerLimits {
    let limits = ServerLimits::read(&mut fields, overrides, report);
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
