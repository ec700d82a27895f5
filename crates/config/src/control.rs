//! The `control` section: live control.

use std::path::Path;

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
    if control.audit_path().is_some() && control.audit_path() == control.cache_file.as_deref() {
        fields.report("audit_file", report, "is the file of the entries too; each needs its own".to_owned());
    }
    fields.finish(report);
    control
}

impl ControlConfig {
    /// The file of the audit; `None` is standard output.
    #[must_use]
    pub fn audit_path(&self) -> Option<&Path> {
        (self.audit_file != Path::new("-")).then_some(&self.audit_file)
    }
}
