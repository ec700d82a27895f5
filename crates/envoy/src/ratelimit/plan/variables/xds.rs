//! The source of the configuration: files, or a control plane.

use super::VariableKind::{Boolean, Duration, Float, Hidden, Integer, Text, Url, Words};
use super::{RatelimitVariable, ignored, mapped};

const FIXED: &str =
    "the time between attempts grows from the initial to the longest one, and is random by a half";

pub(super) fn variables() -> Vec<RatelimitVariable> {
    let mut all = vec![
        mapped(
            "CONFIG_TYPE",
            "FILE",
            Words(&["FILE", "GRPC_XDS_SOTW"]),
            "files, or a control plane: `envoy.config` or `envoy.xds`",
        ),
        mapped(
            "FORCE_START_WITHOUT_INITIAL_CONFIG",
            "false",
            Boolean,
            "with a control plane, whether ports are open before its first configuration: `envoy.xds.wait_for_first`",
        ),
        mapped("CONFIG_GRPC_XDS_NODE_ID", "default", Text, "`envoy.xds.node_id`"),
        mapped("CONFIG_GRPC_XDS_NODE_METADATA", "", Text, "`envoy.xds.node_metadata`"),
        mapped("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", Url, "`envoy.xds.server`"),
        ignored("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s", Duration, FIXED),
        mapped("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "", Hidden, "`envoy.xds.call_headers`"),
        mapped(
            "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
            "10s",
            Duration,
            "`envoy.xds.min_backoff`, which is 1s if this is not set",
        ),
        mapped(
            "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
            "60s",
            Duration,
            "`envoy.xds.max_backoff`, which is 30s if this is not set",
        ),
        ignored("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5", Float, FIXED),
        ignored("XDS_CLIENT_BACKOFF_JITTER", "true", Boolean, FIXED),
        mapped(
            "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
            "",
            Integer(1 << 10, 1 << 30),
            "`envoy.xds.max_message_bytes`, which is 64 MiB if this is not set",
        ),
    ];
    all.extend(tls());
    all
}

fn tls() -> Vec<RatelimitVariable> {
    vec![
        mapped("CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", Boolean, "TLS of the connection: `envoy.xds.tls`"),
        mapped("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "", Text, "`envoy.xds.tls.cert_file`"),
        mapped("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "", Text, "`envoy.xds.tls.key_file`"),
        mapped(
            "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
            "",
            Text,
            "`envoy.xds.tls.ca_file`: only these authorities, without those of the system",
        ),
        mapped("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "", Text, "`envoy.xds.tls.server_name`"),
    ]
}
