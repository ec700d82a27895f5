//! Tests of Redis on Valkey.

use crate::support::other_server;

/// Runs the tests that would tell the two servers apart and do not measure time.
#[test]
fn it_decides_as_redis_does() {
    other_server::passes_on_valkey(&["vectors::", "differential::", "undo::", "denials::"]);
}
