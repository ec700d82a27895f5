//! The tests of Redis on Valkey.

use crate::support::other_server;

#[test]
fn its_queues_are_those_of_redis() {
    other_server::passes_on_valkey(&["queues::"]);
}
