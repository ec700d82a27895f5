//! Tests of Redis 7 on Redis 6.2, the oldest that Weir supports.

use crate::support::other_server;

/// Runs the tests about rights, which this server names in other words and tells less of.
#[test]
fn it_says_which_right_is_missing() {
    other_server::passes_on_redis_6(&[
        "failure::access::",
        "redis_health::rights::",
        "redis_health::leases::",
    ]);
}
