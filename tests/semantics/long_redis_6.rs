//! Tests of Redis 7 on Redis 6.2, the oldest that Weir supports.

use crate::support::other_server;

/// Runs the tests that run the scripts and do not measure time.
#[test]
fn it_decides_as_redis_7_does() {
    let tests = ["vectors::", "differential::", "undo::", "denials::", "rights::"];
    other_server::passes_on_redis_6(&tests);
}
