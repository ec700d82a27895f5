//! Where the configuration comes from: files, or a server of xDS.

use super::VariableKind::{Boolean, Duration, Float, Hidden, Text, Url, Words};
use super::{COUNT, RatelimitVariable, ignored, mapped, unsupported};

const XDS: &str = "configuration over xDS is not supported yet";

pub(super) fn variables() -> Vec<RatelimitVariable> {
    vec![
        mapped(
            "CONFIG_TYPE",
            "FILE",
            Words(&["FILE", "GRPC_XDS_SOTW"]),
            "files; `GRPC_XDS_SOTW` is not supported yet, and an error",
        ),
        ignored("FORCE_START_WITHOUT_INITIAL_CONFIG", "false", Boolean, "it is for xDS"),
        unsupported("CONFIG_GRPC_XDS_NODE_ID", "default", Text, XDS),
        unsupported("CONFIG_GRPC_XDS_NODE_METADATA", "", Text, XDS),
        unsupported("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", Url, XDS),
        ignored("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s", Duration, XDS),
        unsupported("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "", Hidden, XDS),
        unsupported("CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", Boolean, XDS),
        unsupported("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "", Text, XDS),
        unsupported("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "", Text, XDS),
        unsupported("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "", Text, XDS),
        unsupported("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "", Text, XDS),
        ignored("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10s", Duration, XDS),
        ignored("XDS_CLIENT_BACKOFF_MAX_INTERVAL", "60s", Duration, XDS),
        ignored("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5", Float, XDS),
        ignored("XDS_CLIENT_BACKOFF_JITTER", "true", Boolean, XDS),
        ignored("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "", COUNT, XDS),
    ]
}
