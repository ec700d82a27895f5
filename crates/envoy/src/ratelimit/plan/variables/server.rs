//! Ports, TLS, files and answers.

use super::VariableKind::{Boolean, Duration, Float, Text};
use super::{PORT, RatelimitVariable, ignored, mapped, unsupported};

const TLS: &str = "TLS of the gRPC port, as `server.tls`; files are read again when they change";
const FILES: &str = "`envoy.config`: the directory of the files";

pub(super) fn variables() -> Vec<RatelimitVariable> {
    let mut all = ports();
    all.extend(files());
    all.extend(answers());
    all
}

fn ports() -> Vec<RatelimitVariable> {
    let host = "the address of `/healthcheck` and `/json`; `0.0.0.0`, `::` and empty are all addresses of IPv4 and IPv6";
    vec![
        mapped("HOST", "0.0.0.0", Text, host),
        mapped("PORT", "8080", PORT, "the port of `/healthcheck` and `/json`"),
        mapped("DEBUG_HOST", "0.0.0.0", Text, "the address of `/rlconfig`, `/stats` and `/metrics`"),
        mapped("DEBUG_PORT", "6070", PORT, "the port of `/rlconfig`, `/stats` and `/metrics`"),
        mapped("GRPC_HOST", "0.0.0.0", Text, "the address of gRPC, `server.listen`"),
        mapped("GRPC_PORT", "8081", PORT, "the port of gRPC, `server.listen`"),
        mapped("GRPC_UDS", "", Text, "a Unix socket for gRPC instead of a port, `server.listen`"),
        mapped("GRPC_MAX_CONNECTION_AGE", "24h", Duration, "`server.limits.max_connection_age`, 1s to 7d"),
        mapped(
            "GRPC_MAX_CONNECTION_AGE_GRACE",
            "1h",
            Duration,
            "`server.limits.max_connection_age_grace`, at most 1h",
        ),
        mapped("GRPC_SERVER_USE_TLS", "false", Boolean, TLS),
        mapped("GRPC_SERVER_TLS_CERT", "", Text, TLS),
        mapped("GRPC_SERVER_TLS_KEY", "", Text, TLS),
        mapped(
            "GRPC_CLIENT_TLS_CACERT",
            "",
            Text,
            "clients need a certificate of these authorities, and only of these",
        ),
        mapped(
            "GRPC_CLIENT_TLS_SAN",
            "",
            Text,
            "`server.tls.client_san`: the name that client certificates must have",
        ),
        ignored("GRPC_SERVER_TLS_CA_CERT", "", Text, "no setting of the reference either"),
    ]
}

fn files() -> Vec<RatelimitVariable> {
    vec![
        mapped("RUNTIME_ROOT", "/srv/runtime_data/current", Text, FILES),
        mapped("RUNTIME_SUBDIRECTORY", "", Text, FILES),
        mapped("RUNTIME_APPDIRECTORY", "config", Text, FILES),
        mapped(
            "RUNTIME_WATCH_ROOT",
            "true",
            Boolean,
            "whether the files are those of the subdirectory whose dotted name begins with `RUNTIME_APPDIRECTORY.`, or all of the \
             app directory",
        ),
        ignored("RUNTIME_IGNOREDOTFILES", "false", Boolean, "files that begin with a dot are always ignored"),
        mapped("MERGE_DOMAIN_CONFIG", "false", Boolean, "`envoy.merge_domains`"),
    ]
}

fn answers() -> Vec<RatelimitVariable> {
    vec![
        mapped("NEAR_LIMIT_RATIO", "0.8", Float, "`envoy.near_limit_ratio`"),
        mapped("SHADOW_MODE", "false", Boolean, "`envoy.shadow_mode`"),
        mapped("QUOTA_MODE", "false", Boolean, "`envoy.quota_mode`"),
        mapped("RESPONSE_DYNAMIC_METADATA", "false", Boolean, "`envoy.dynamic_metadata`"),
        mapped("LIMIT_RESPONSE_HEADERS_ENABLED", "false", Boolean, "`envoy.headers`"),
        mapped("LIMIT_LIMIT_HEADER", "RateLimit-Limit", Text, "`envoy.limit_header`"),
        mapped("LIMIT_REMAINING_HEADER", "RateLimit-Remaining", Text, "`envoy.remaining_header`"),
        mapped("LIMIT_RESET_HEADER", "RateLimit-Reset", Text, "`envoy.reset_header`"),
        unsupported(
            "LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED",
            "false",
            Boolean,
            "headers are those of the descriptor that limits most",
        ),
        ignored("ENABLE_NEGATIVE_HITS", "false", Boolean, "negative hits are always given back"),
    ]
}
