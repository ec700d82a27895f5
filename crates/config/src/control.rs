//! The `control` section: live control.

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::table::{ControlConfig, ServerConfig};

/// Reads the section.
pub(super) fn control(
    mut fields: Mapping<'_>,
    (server, has_redis): (&ServerConfig, bool),
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> ControlConfig {
    let control = ControlConfig::read(&mut fields, &overrides.given, report);
    if server.control && !has_redis && control.cache_file.is_none() {
        let reason = "`server.control` on the memory store needs a file: it is the only place of the entries";
        fields.report("cache_file", report, reason.to_owned());
    }
    if server.audit_path().is_some() && server.audit_path() == control.cache_file.as_deref() {
        fields.report("cache_file", report, "is `server.audit_file` too; each needs its own".to_owned());
    }
    fields.refuse(&["audit_file"], "is now `server.audit_file`, and has more than live control", report);
    fields.finish(report);
    control
}
