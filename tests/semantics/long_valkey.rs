//! What is true on Redis is true on Valkey.

use crate::support::valkey;

/// Those that would tell the two servers apart, and do not measure time.
#[test]
fn it_decides_as_redis_does() {
    valkey::passes(&["vectors::", "differential::", "undo::", "denials::", "leases::", "queues::"]);
}
