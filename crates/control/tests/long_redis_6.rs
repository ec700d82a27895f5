//! The tests of Redis 7 on Redis 6.2, the oldest that Weir supports.

use crate::support::other_server;

#[test]
fn its_records_are_those_of_redis_7() {
    other_server::passes_on_redis_6(&["control::"]);
}
