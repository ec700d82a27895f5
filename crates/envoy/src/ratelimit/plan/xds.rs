//! A control plane: `CONFIG_TYPE=GRPC_XDS_SOTW`.

use super::given::RatelimitGiven;
use super::mapped::Mapped;
use super::variables::VariableEffect;
use crate::settings::{XdsAddress, pairs};

/// Bounds of the times between attempts, in microseconds.
const SHORTEST: u64 = 10_000;
const LONGEST: u64 = 3_600_000_000;

/// The settings that texts set.
const TEXTS: [(&str, &str); 2] = [
    ("envoy.xds.node_metadata", "CONFIG_GRPC_XDS_NODE_METADATA"),
    ("envoy.xds.call_headers", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS"),
];

/// The settings of TLS.
const TLS: [(&str, &str); 4] = [
    ("envoy.xds.tls.cert_file", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT"),
    ("envoy.xds.tls.key_file", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY"),
    ("envoy.xds.tls.ca_file", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT"),
    ("envoy.xds.tls.server_name", "CONFIG_GRPC_XDS_SERVER_TLS_SAN"),
];

/// True if a control plane sends the configuration.
pub(super) fn is_used(given: &RatelimitGiven) -> bool {
    given.text("CONFIG_TYPE") == Some("grpc_xds_sotw")
}

/// Says that files are used.
pub(super) fn unused(given: &mut RatelimitGiven) {
    for line in given.lines() {
        let is_xds = line.name.starts_with("CONFIG_GRPC_XDS_") || line.name.starts_with("XDS_CLIENT_");
        if is_xds || line.name == "FORCE_START_WITHOUT_INITIAL_CONFIG" {
            given.explain(line.name, VariableEffect::Ignored("CONFIG_TYPE is not GRPC_XDS_SOTW"));
        }
    }
}

/// Maps the variables.
pub(super) fn xds(given: &mut RatelimitGiven, mapped: &mut Mapped) {
    const SERVER: &str = "CONFIG_GRPC_XDS_SERVER_URL";
    let server = given.text(SERVER).unwrap_or("localhost:18000").to_owned();
    match XdsAddress::parse(&server) {
        Ok(address) => mapped.set("envoy.xds.server", SERVER, address.to_string()),
        Err(reason) => given.wrong(SERVER, reason),
    }
    let node = given.text("CONFIG_GRPC_XDS_NODE_ID").unwrap_or("default").to_owned();
    mapped.set("envoy.xds.node_id", "CONFIG_GRPC_XDS_NODE_ID", node);
    let force = given.boolean("FORCE_START_WITHOUT_INITIAL_CONFIG").unwrap_or(false);
    mapped.set("envoy.xds.wait_for_first", "FORCE_START_WITHOUT_INITIAL_CONFIG", (!force).to_string());
    for ((path, name), between) in TEXTS.into_iter().zip(['=', ':']) {
        match given.text(name).map(|text| (pairs(text, between).is_some(), text.to_owned())) {
            Some((true, text)) => mapped.set(path, name, text),
            Some((false, _)) => {
                given.wrong(name, format_args!("it must be KEY{between}VALUE,KEY{between}VALUE"))
            }
            None => {}
        }
    }
    if let Some(bytes) = given.integer("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES") {
        mapped.set("envoy.xds.max_message_bytes", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", bytes.to_string());
    }
    backoff(given, mapped);
    tls(given, mapped);
}

fn backoff(given: &RatelimitGiven, mapped: &mut Mapped) {
    let span = |name| given.micros(name).map(|micros| micros.clamp(SHORTEST, LONGEST));
    let (first, most) =
        (span("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL"), span("XDS_CLIENT_BACKOFF_MAX_INTERVAL"));
    let most = most.or(first.map(|first| first.max(30_000_000)));
    // The reference takes a longest time below the first one as the first one.
    let first = first.map(|first| first.min(most.unwrap_or(first)));
    let first = first.or(most.map(|most| most.min(1_000_000)));
    let text = |micros: Option<u64>| micros.map(|micros| format!("{micros}us"));
    mapped.set_some("envoy.xds.min_backoff", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", text(first));
    mapped.set_some("envoy.xds.max_backoff", "XDS_CLIENT_BACKOFF_MAX_INTERVAL", text(most));
}

fn tls(given: &mut RatelimitGiven, mapped: &mut Mapped) {
    if given.boolean("CONFIG_GRPC_XDS_SERVER_USE_TLS") != Some(true) {
        for (_, name) in TLS {
            given.explain(name, VariableEffect::Ignored("CONFIG_GRPC_XDS_SERVER_USE_TLS is not true"));
        }
        return;
    }
    // Without any other setting, the section must be there.
    let name = given.text("CONFIG_GRPC_XDS_SERVER_TLS_SAN").map(str::to_owned);
    let host = mapped.overrides.text_at("envoy.xds.server").and_then(|server| XdsAddress::parse(server).ok());
    let name = name.or(host.map(|address| address.host));
    mapped.set_some("envoy.xds.tls.server_name", "CONFIG_GRPC_XDS_SERVER_TLS_SAN", name);
    for (path, name) in TLS.into_iter().take(3) {
        mapped.set_some(path, name, given.text(name).map(str::to_owned));
    }
}
