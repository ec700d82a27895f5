//! The section `control` of the configuration: where live control keeps what it knows.

use std::path::PathBuf;
use std::sync::Arc;

use weir_config::{
    Applies, FeatureSetting, SectionReader, SectionSettings, SectionSpec, SettingForm, SettingGroup,
};

/// Files of live control.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlSettings {
    /// The file with the last known entries.
    pub(crate) cache_file: Option<PathBuf>,
}

const CACHE_FILE: FeatureSetting = FeatureSetting {
    key: "cache_file",
    about: "The file with the last known entries of live control.",
    default: "",
    form: SettingForm::File("none"),
    flag: Some("control_cache_file"),
    applies: Applies::AtRestart,
    more: "A node starts from it while Redis is away. Needed on the memory store, where the entries live nowhere \
           else. It is replaced by a rename, so its directory must be writable.",
};

pub(crate) const SECTION: SectionSpec = SectionSpec {
    groups: &[SettingGroup { name: "", about: "", settings: &[CACHE_FILE] }],
    ..SectionSpec::new("control", "Files of live control.", read)
};

fn read(section: &mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>> {
    let cache_file = section.file(&CACHE_FILE);
    if section.server().control && !section.has_redis() && cache_file.is_none() {
        let reason = "`server.control` on the memory store needs a file: it is the only place of the entries";
        section.report(CACHE_FILE.key, reason);
    }
    let audit = section.server().audit_path();
    if audit.is_some() && audit == cache_file.as_deref() {
        section.report(CACHE_FILE.key, "is `server.audit_file` too; each needs its own");
    }
    section.refuse_gone(&["audit_file"], "is now `server.audit_file`, and has more than live control");
    Some(Arc::new(ControlSettings { cache_file }))
}
