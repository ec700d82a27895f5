//! The `server` and `messages` sections.

use weir_units::Micros;

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::limits::limits;
use super::listen::{ListenAddress, file_mode, listen_address};
use super::overrides::ConfigOverrides;
use super::quantities::duration_within;
use super::values::{Scalar, address, boolean, choice, integer_within, quote};
use super::{DenialMessages, ServerConfig, TransportKind};

/// The most workers. More than any machine has cores for is a slip of the pen.
pub(super) const MAX_WORKERS: usize = 1024;

/// The longest time to wait before draining, and the longest that calls in flight may take to finish.
const MAX_DRAIN: Micros = Micros::from_secs(600);

/// The longest sentence on denial, in bytes. It is sent with every denial.
pub(super) const MAX_MESSAGE: usize = 512;

/// The `server` section with the settings that go before it.
pub(super) fn server(
    mut fields: Mapping<'_>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> ServerConfig {
    let default = ServerConfig::default();
    let listen = fields.choose("listen", settings.of("listen"), report, listen_address);
    let listen_mode = fields.choose("listen_mode", settings.of("listen_mode"), report, file_mode);
    let admin = fields.choose("admin", settings.of("admin"), report, address);
    let transport = fields.choose("transport", settings.of("transport"), report, |s| {
        choice(s, &[("fast", TransportKind::Fast), ("tonic", TransportKind::Tonic)])
    });
    let workers =
        fields.choose("workers", settings.of("workers"), report, |s| integer_within(s, 0, MAX_WORKERS));
    let reflection = fields.choose("reflection", settings.of("reflection"), report, boolean);
    let admin_service = fields.choose("admin_service", settings.of("admin_service"), report, boolean);
    let inline_limits = fields.choose("inline_limits", settings.of("inline_limits"), report, boolean);
    let needs_store = settings.of("ready_needs_store");
    let ready_needs_store = fields.choose("ready_needs_store", needs_store, report, boolean);
    let drain = |s: Scalar<'_>| duration_within(s, Micros::ZERO, MAX_DRAIN);
    let drain_delay = fields.choose("drain_delay", settings.of("drain_delay"), report, drain);
    let drain_timeout = fields.choose("drain_timeout", settings.of("drain_timeout"), report, drain);
    let limits = limits(fields.section("limits", report), report);
    let server = ServerConfig {
        listen: listen.unwrap_or(default.listen),
        listen_mode: listen_mode.unwrap_or(default.listen_mode),
        admin: admin.unwrap_or(default.admin),
        transport: transport.unwrap_or(default.transport),
        workers: workers.unwrap_or(default.workers),
        reflection: reflection.unwrap_or(default.reflection),
        admin_service: admin_service.unwrap_or(default.admin_service),
        inline_limits: inline_limits.unwrap_or(default.inline_limits),
        ready_needs_store: ready_needs_store.unwrap_or(default.ready_needs_store),
        drain_delay: drain_delay.unwrap_or(default.drain_delay),
        drain_timeout: drain_timeout.unwrap_or(default.drain_timeout),
        limits,
    };
    if server.listen == ListenAddress::Tcp(server.admin) && server.admin.port() != 0 {
        let reason = format!("{} is the address of `listen` too; each needs its own", server.admin);
        let setting = [settings.of("admin"), settings.of("listen")].into_iter().find(|s| s.text.is_some());
        match setting {
            Some(setting) => setting.report(&fields.path_of("admin"), report, reason),
            None => fields.report("admin", report, reason),
        }
    }
    fields.finish(report);
    server
}

/// The `messages` section.
pub(super) fn messages(mut fields: Mapping<'_>, report: &mut MistakeReport) -> DenialMessages {
    let default = DenialMessages::default();
    let limited = |s| template(s, &["wait", "seconds", "cost", "limit"]);
    let messages = DenialMessages {
        limited: fields.read("limited", report, limited).unwrap_or(default.limited),
        // The wait is not known.
        unknown: fields
            .read("unknown", report, |s| template(s, &["cost", "limit"]))
            .unwrap_or(default.unknown),
        // No wait helps here, so the sentence may not name one.
        never: fields.read("never", report, |s| template(s, &["cost", "limit"])).unwrap_or(default.never),
    };
    fields.finish(report);
    messages
}

/// A sentence whose braces hold known placeholders only.
fn template(scalar: Scalar<'_>, placeholders: &[&str]) -> Result<String, String> {
    let text = scalar.text;
    if text.len() > MAX_MESSAGE {
        return Err(format!("{} is {} bytes long: at most {MAX_MESSAGE}", quote(text), text.len()));
    }
    let mut rest = text;
    while let Some(brace) = rest.find(['{', '}']) {
        let (before, from_brace) = rest.split_at(brace);
        let unbalanced = || format!("a brace has no partner after {}", quote(before));
        let inside = from_brace.strip_prefix('{').ok_or_else(unbalanced)?;
        let (name, after) = inside.split_once('}').ok_or_else(unbalanced)?;
        if !placeholders.contains(&name) {
            let known: Vec<String> = placeholders.iter().map(|known| format!("{{{known}}}")).collect();
            let unknown = quote(&format!("{{{name}}}"));
            return Err(format!("{unknown} is not a placeholder here; known are: {}", known.join(", ")));
        }
        rest = after;
    }
    Ok(text.to_owned())
}
