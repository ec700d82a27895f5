//! The section `http` of the configuration.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weir_config::{
    Applies, FeaturePort, FeatureSetting, SectionKey, SectionReader, SectionSettings, SectionSpec,
    SettingForm, SettingGroup,
};
use weir_units::Micros;

use crate::check::{CheckSettings, checks, schema};

/// The settings of the listener.
#[derive(Debug, Clone)]
pub(crate) struct HttpSettings {
    pub(crate) checks: Vec<Arc<CheckSettings>>,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_connection_age: Duration,
}

const LISTEN: FeatureSetting = FeatureSetting {
    key: "listen",
    about: "Address of the HTTP listener: IP:PORT, or unix:PATH.",
    default: "",
    form: SettingForm::Address,
    flag: Some("http"),
    applies: Applies::AtRestart,
    more: "Without it there is none. See [HTTP](http.md).",
};

const MAX_CONNECTIONS: FeatureSetting = FeatureSetting {
    key: "max_connections",
    about: "Open connections of the HTTP listener; further ones are closed at once.",
    default: "10000",
    form: SettingForm::Count(1, 1_000_000),
    flag: None,
    applies: Applies::AtRestart,
    more: "",
};

const IDLE_TIMEOUT: FeatureSetting = FeatureSetting {
    key: "idle_timeout",
    about: "Time that an HTTP connection may be idle between two requests.",
    default: "75s",
    form: SettingForm::Span(Micros::from_secs(1), Micros::from_secs(3_600)),
    flag: None,
    applies: Applies::AtRestart,
    more: "",
};

const MAX_CONNECTION_AGE: FeatureSetting = FeatureSetting {
    key: "max_connection_age",
    about: "Age at which an HTTP connection ends after its request, eight to twelve tenths of it.",
    default: "30m",
    form: SettingForm::Span(Micros::from_secs(1), Micros::from_secs(7 * 86_400)),
    flag: None,
    applies: Applies::AtRestart,
    more: "",
};

pub(crate) const SECTION: SectionSpec = SectionSpec {
    groups: &[
        SettingGroup { name: "", about: "", settings: &[LISTEN] },
        SettingGroup {
            name: "limits",
            about: "Bounds of the HTTP listener.",
            settings: &[MAX_CONNECTIONS, IDLE_TIMEOUT, MAX_CONNECTION_AGE],
        },
    ],
    keys: &[
        SectionKey {
            name: "tls",
            about: "TLS of the HTTP listener, in the form of `server.tls`.",
            schema: || json!({ "$ref": "#/$defs/server_tls" }),
        },
        SectionKey { name: "checks", about: "Questions of proxies, by the names in `/check/NAME`.", schema },
    ],
    example: &[("http", "127.0.0.1:8082")],
    ..SectionSpec::new("http", "The HTTP listener.", read)
};

fn read(section: &mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>> {
    let listen = section.address(&LISTEN);
    let tls = section.tls("tls");
    let (max_connections, idle_timeout, max_connection_age) = section.mapping("limits", |limits| {
        (limits.count(&MAX_CONNECTIONS), limits.span(&IDLE_TIMEOUT), limits.span(&MAX_CONNECTION_AGE))
    });
    let checks = checks(section).into_iter().map(Arc::new).collect();
    let Some(listen) = listen else {
        if section.is_present() {
            section.report(
                "listen",
                "is missing; write an address, such as 127.0.0.1:8082, or remove the section",
            );
        }
        return None;
    };
    let port = FeaturePort {
        setting: "http.listen",
        tls_section: "http.tls",
        address: listen,
        tls,
        protocols: &[b"http/1.1"],
        max_connections: usize::try_from(max_connections).unwrap_or(usize::MAX),
    };
    section.listen("listen", port);
    let (idle_timeout, max_connection_age) = (idle_timeout.into(), max_connection_age.into());
    Some(Arc::new(HttpSettings { checks, idle_timeout, max_connection_age }))
}
