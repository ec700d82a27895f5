//! `server.limits`: every bound of what callers can make the server hold or do.

use weir_config::ServerLimits;
use weir_units::Micros;

use super::{accepted, refused, section};

#[test]
fn every_limit_has_its_place() {
    let config = accepted(&section(
        "server: { limits: { max_connections: 5, max_streams: 6, max_header_bytes: 8KiB, \
         max_message_bytes: 1MiB, max_pending_resets: 7, max_local_resets: 8, max_buffered_bytes: 9MiB, \
         max_side_streams: 9, max_open_streams: 10, admin_max_connections: 11, first_message_timeout: 5s, handshake_timeout: 1s, \
         max_handshakes: 12, tls_handshake_timeout: 6s, \
         keepalive_interval: 2s, keepalive_timeout: 3s, max_connection_age: 1h, max_connection_age_grace: 4s } }",
    ));
    let expected = ServerLimits {
        admin_max_connections: 11,
        max_connections: 5,
        max_streams: 6,
        max_side_streams: 9,
        max_open_streams: 10,
        max_header_bytes: 8 << 10,
        max_message_bytes: 1 << 20,
        max_pending_resets: 7,
        max_local_resets: 8,
        max_buffered_bytes: 9 << 20,
        max_handshakes: 12,
        tls_handshake_timeout: Micros::from_secs(6),
        handshake_timeout: Micros::from_secs(1),
        first_message_timeout: Micros::from_secs(5),
        keepalive_interval: Micros::from_secs(2),
        keepalive_timeout: Micros::from_secs(3),
        max_connection_age: Some(Micros::from_secs(3600)),
        max_connection_age_grace: Micros::from_secs(4),
    };
    assert_eq!(config.server.limits, expected);
}

#[test]
fn limits_have_limits() {
    refused(
        &[
            (
                "server: { limits: { max_connections: 0 } }",
                "1:38: server.limits.max_connections: 0 is out of bounds: it must be from 1 to 1000000",
            ),
            (
                "server: { limits: { max_streams: 100_001 } }",
                "1:34: server.limits.max_streams: 100001 is out of bounds: it must be from 1 to 100000",
            ),
            (
                "server: { limits: { max_side_streams: 0, max_open_streams: 0 } }",
                "1:39: server.limits.max_side_streams: 0 is out of bounds: it must be from 1 to 100000\n1:60: server.limits.max_open_streams: 0 is out of bounds: it must be from 1 to 10000000",
            ),
            (
                "server: { limits: { first_message_timeout: 1ms } }",
                "1:44: server.limits.first_message_timeout: 1ms is out of bounds: it must be from 100ms to 3600s",
            ),
            (
                "server: { limits: { max_header_bytes: 1023 } }",
                "1:39: server.limits.max_header_bytes: 1023 is out of bounds: it must be from 1024 to 1048576",
            ),
            (
                "server: { limits: { max_message_bytes: 5MiB } }",
                "1:40: server.limits.max_message_bytes: 5242880 is out of bounds: it must be from 32768 to 4194304",
            ),
            (
                "server: { limits: { max_pending_resets: 0, max_local_resets: 0 } }",
                "1:41: server.limits.max_pending_resets: 0 is out of bounds: it must be from 1 to 100000\n1:62: server.limits.max_local_resets: 0 is out of bounds: it must be from 1 to 100000",
            ),
            (
                "server: { limits: { max_buffered_bytes: 1MiB } }",
                "1:41: server.limits.max_buffered_bytes: 1048576 is out of bounds: it must be from 2097152 to 1099511627776",
            ),
            (
                "server: { limits: { max_message_bytes: 4MiB, max_buffered_bytes: 7MiB } }",
                "1:66: server.limits.max_buffered_bytes: 7340032 bytes are less than twice the largest message, which may have 4194304: set at least 8388608",
            ),
            (
                "server: { limits: { handshake_timeout: 99ms } }",
                "1:40: server.limits.handshake_timeout: 99ms is out of bounds: it must be from 100ms to 3600s",
            ),
            (
                "server: { limits: { keepalive_interval: 0s, keepalive_timeout: 2h } }",
                "1:41: server.limits.keepalive_interval: 0s is out of bounds: it must be from 100ms to 3600s\n1:64: server.limits.keepalive_timeout: 7200s is out of bounds: it must be from 100ms to 3600s",
            ),
            (
                "server: { limits: { max_connection_age: 999ms } }",
                "1:41: server.limits.max_connection_age: 999ms is out of bounds: it must be from 1s to 604800s",
            ),
            (
                "server: { limits: { max_conections: 1 } }",
                "1:21: server.limits.max_conections: unknown key; did you mean `max_connections`?",
            ),
        ],
        section,
    );
}
