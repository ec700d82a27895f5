//! `server.limits`: bounds that depend on one another. Each alone is checked beside the table of settings.

use super::{refused, section};

#[test]
fn the_buffers_hold_two_of_the_largest_messages() {
    refused(
        &[(
            "server: { limits: { max_message_bytes: 4MiB, max_buffered_bytes: 7MiB } }",
            "1:66: server.limits.max_buffered_bytes: 7340032 bytes are less than twice the largest message, which may have \
             4194304: set at least 8388608",
        )],
        section,
    );
}
