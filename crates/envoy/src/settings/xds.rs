//! The mappings `envoy.xds` and `envoy.xds.tls`: a control plane that sends Envoy's domains.

use std::path::PathBuf;

use serde_json::{Value, json};
use weir_config::{FeatureSetting, Secret, SectionReader, SettingForm, mapping_schema};
use weir_units::Micros;

use super::xds_address::{XdsAddress, pairs};
use super::xds_tls_names::XdsTlsNames;

/// The longest text about a node, in bytes.
const MAX_TEXT: usize = 4096;

/// The bounds of the time between attempts to connect.
const SHORTEST: Micros = Micros::from_millis(10);
const LONGEST: Micros = Micros::from_secs(3600);

/// A control plane that sends Envoy's domains.
#[derive(Debug, Clone, PartialEq)]
pub struct XdsConfig {
    /// Address of the control plane.
    pub server: String,
    /// The name by which the control plane chooses what to send.
    pub node_id: String,
    /// Metadata of the node: `KEY=VALUE,KEY=VALUE`.
    pub node_metadata: Option<String>,
    /// Headers of the call: `NAME:VALUE,NAME:VALUE`.
    pub call_headers: Option<Secret>,
    /// The largest message with all domains.
    pub max_message_bytes: usize,
    /// The time before the first attempt to connect again.
    pub min_backoff: Micros,
    /// The longest time between attempts to connect.
    pub max_backoff: Micros,
    /// True if no port is opened before the first configuration has arrived.
    pub wait_for_first: bool,
    /// TLS of the connection.
    pub tls: Option<XdsTlsConfig>,
}

/// TLS of the connection to a control plane. All files are read again for each connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct XdsTlsConfig {
    /// The certificate authorities that the server's certificate must come from, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The certificate of this client, in PEM.
    pub cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM.
    pub key_file: Option<PathBuf>,
    /// The name that the server's certificate must have.
    pub server_name: Option<String>,
    /// Names of these settings in mistakes.
    pub names: XdsTlsNames,
}

impl Default for XdsConfig {
    fn default() -> Self {
        Self {
            server: String::new(),
            node_id: "weir".to_owned(),
            node_metadata: None,
            call_headers: None,
            max_message_bytes: 64 << 20,
            min_backoff: Micros::from_secs(1),
            max_backoff: Micros::from_secs(30),
            wait_for_first: false,
            tls: None,
        }
    }
}

const SERVER: FeatureSetting = FeatureSetting::new(
        "server",
        SettingForm::NeededText(512),
        "The address of the control plane, HOST:PORT.",
    ).more("It serves `AggregatedDiscoveryService` and the type `RateLimitConfig`, as Envoy Gateway does. `dns:///` in front \
           of it is allowed.");
const NODE_ID: FeatureSetting = FeatureSetting::new(
    "node_id",
    SettingForm::Text(MAX_TEXT, ""),
    "The name by which the control plane chooses what to send.",
)
.or("weir");
const NODE_METADATA: FeatureSetting = FeatureSetting::new(
    "node_metadata",
    SettingForm::Text(MAX_TEXT, "none"),
    "What else the node says of itself: `KEY=VALUE,KEY=VALUE`.",
);
const CALL_HEADERS: FeatureSetting = FeatureSetting::new(
    "call_headers",
    SettingForm::Secret("none"),
    "Headers of the call: `NAME:VALUE,NAME:VALUE`.",
)
.more("They are never shown.");
const MAX_MESSAGE_BYTES: FeatureSetting = FeatureSetting::new(
    "max_message_bytes",
    SettingForm::Size(1 << 10, 1 << 30),
    "The largest message with all domains.",
)
.or("64MiB");
const MIN_BACKOFF: FeatureSetting = FeatureSetting::new(
    "min_backoff",
    SettingForm::Span(SHORTEST, LONGEST),
    "The time before the first attempt to connect again.",
)
.or("1s")
.more("It doubles with each attempt that fails, and is random by a half.");
const MAX_BACKOFF: FeatureSetting = FeatureSetting::new(
    "max_backoff",
    SettingForm::Span(SHORTEST, LONGEST),
    "The longest time between attempts to connect.",
)
.or("30s");
const WAIT_FOR_FIRST: FeatureSetting = FeatureSetting::new(
        "wait_for_first",
        SettingForm::Switch,
        "Whether no port is opened before the first configuration has arrived.",
    ).or("false").more("Otherwise requests get `FAILED_PRECONDITION` until then. A first configuration with mistakes counts too.");
const TLS: FeatureSetting = FeatureSetting::new(
    "tls",
    SettingForm::Defined("envoy_xds_tls", "none"),
    "TLS of the connection; without it, it is plain text.",
);
const CA_FILE: FeatureSetting = FeatureSetting::new(
    "ca_file",
    SettingForm::File("system"),
    "The certificate authorities that the server's certificate must come from, in PEM.",
)
.more("Only these are trusted.");
const CERT_FILE: FeatureSetting =
    FeatureSetting::new("cert_file", SettingForm::File("none"), "The certificate of this client, in PEM.")
        .more("It needs `key_file`. All files are read again for each connection.");
const KEY_FILE: FeatureSetting = FeatureSetting::new(
    "key_file",
    SettingForm::File("none"),
    "The private key of that certificate, in PEM.",
);
const SERVER_NAME: FeatureSetting = FeatureSetting::new(
    "server_name",
    SettingForm::Text(255, "the host of `server`"),
    "The name that the server's certificate must have.",
);

/// The settings of `envoy.xds`.
pub(super) const SETTINGS: &[FeatureSetting] = &[
    SERVER,
    NODE_ID,
    NODE_METADATA,
    CALL_HEADERS,
    MAX_MESSAGE_BYTES,
    MIN_BACKOFF,
    MAX_BACKOFF,
    WAIT_FOR_FIRST,
    TLS,
];

/// The settings of `envoy.xds.tls`.
pub(super) const TLS_SETTINGS: &[FeatureSetting] = &[CA_FILE, CERT_FILE, KEY_FILE, SERVER_NAME];

/// The schema of `envoy.xds`.
pub(super) fn schema() -> Value {
    let mut schema = mapping_schema(SETTINGS, &[SERVER.key]);
    let mut tls = mapping_schema(TLS_SETTINGS, &[]);
    tls["description"] = json!(TLS.about);
    schema["properties"][TLS.key] = tls;
    schema
}

/// Reads the mapping in `envoy`, if it is there.
pub(super) fn read(envoy: &mut SectionReader<'_, '_>, key: &'static str) -> Option<XdsConfig> {
    envoy.optional_mapping(key, |xds| {
        let mut config = XdsConfig {
            node_id: xds.text_of(&NODE_ID).unwrap_or_default(),
            node_metadata: xds.text_of(&NODE_METADATA),
            call_headers: xds.secret(&CALL_HEADERS),
            max_message_bytes: usize::try_from(xds.size(&MAX_MESSAGE_BYTES)).unwrap_or(usize::MAX),
            min_backoff: xds.span(&MIN_BACKOFF),
            max_backoff: xds.span(&MAX_BACKOFF),
            wait_for_first: xds.switch(&WAIT_FOR_FIRST),
            ..XdsConfig::default()
        };
        config.server = server(xds).unwrap_or_default();
        config.tls = tls(xds);
        let is_wrong = |text: Option<&str>, between| text.is_some_and(|text| pairs(text, between).is_none());
        if is_wrong(config.node_metadata.as_deref(), '=') {
            xds.report_given(&NODE_METADATA, "it must be KEY=VALUE,KEY=VALUE");
        }
        let headers = config.call_headers.as_ref().and_then(|headers| headers.read().ok());
        if is_wrong(headers.as_deref(), ':') {
            xds.report_given(&CALL_HEADERS, "it must be NAME:VALUE,NAME:VALUE");
        }
        if config.max_backoff < config.min_backoff {
            xds.report_given(&MAX_BACKOFF, "must be at least `min_backoff`");
        }
        config
    })
}

fn server(xds: &mut SectionReader<'_, '_>) -> Option<String> {
    let (is_given, server) = (xds.is_given(&SERVER), xds.text_of(&SERVER));
    if !is_given && xds.is_whole() {
        xds.report(SERVER.key, "is missing; it is the address of the control plane, HOST:PORT");
    }
    let server = server?;
    if let Err(reason) = XdsAddress::parse(&server) {
        xds.report_given(&SERVER, &reason);
        return None;
    }
    Some(server)
}

fn tls(xds: &mut SectionReader<'_, '_>) -> Option<XdsTlsConfig> {
    let config = xds.optional_mapping(TLS.key, |tls| {
        let config = XdsTlsConfig {
            ca_file: tls.file(&CA_FILE),
            cert_file: tls.file(&CERT_FILE),
            key_file: tls.file(&KEY_FILE),
            server_name: tls.text_of(&SERVER_NAME),
            names: XdsTlsNames(XdsTlsNames::KEYS.map(|key| tls.name_of(key))),
        };
        match (&config.cert_file, &config.key_file) {
            (Some(_), None) => tls.report_given(&CERT_FILE, "needs `key_file`"),
            (None, Some(_)) => tls.report_given(&KEY_FILE, "needs `cert_file`"),
            _ => {}
        }
        let files: [(&FeatureSetting, &Option<PathBuf>); 3] =
            [(&CA_FILE, &config.ca_file), (&CERT_FILE, &config.cert_file), (&KEY_FILE, &config.key_file)];
        for (setting, path) in files {
            tls.report_missing_file(setting, path.as_deref());
        }
        config
    });
    xds.show_whole(TLS.key, TLS.applies, config.is_some().to_string());
    config
}
