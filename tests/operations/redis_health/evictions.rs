//! An evicted key is a limit that starts full again.

use weir_config::{Login, RedisConfig, Secret};

use super::{of_node, on, ready, says, single};
use crate::failure::access::add_user;
use crate::support::server::Server;
use crate::support::{RedisServer, SOON, eventually};

#[test]
fn evictions_and_policies_that_evict_are_reported() {
    let redis = RedisServer::start();
    let set = |name: &str, value: &str| drop(redis.cli(&["CONFIG", "SET", name, value]));
    set("maxmemory-policy", "allkeys-lru");
    set("maxmemory", "8mb");
    let server = Server::start_by_the_system(on(single(&redis)));
    let node = redis.addr();
    says(&server, &["note: Redis node", &node, "its maxmemory-policy is allkeys-lru", "noeviction"]);
    assert_eq!(of_node(&server, "weir_store_node_may_evict", &node).as_deref(), Some("1"));
    assert_eq!(of_node(&server, "weir_store_evicted_keys_total", &node).as_deref(), Some("0"));
    let value = "x".repeat(100_000);
    for index in 0..200 {
        redis.cli(&["SET", &format!("filler{index}"), &value]);
    }
    says(&server, &["note: Redis node", &node, "evicts keys", "were evicted", "noeviction"]);
    let evicted = of_node(&server, "weir_store_evicted_keys_total", &node).unwrap();
    assert!(evicted.parse::<u64>().unwrap() > 0, "{evicted}");
    assert!(server.get("/readyz").1.starts_with("ready\n"), "decisions are made");
    set("maxmemory-policy", "noeviction");
    set("maxmemory", "0");
    eventually(SOON, "the policy is another one", || {
        of_node(&server, "weir_store_node_may_evict", &node).as_deref() == Some("0")
    });
}

/// A user without `+info` is refused once, and never again.
#[test]
fn a_refused_info_is_not_asked_for_again() {
    let redis = RedisServer::start();
    add_user(&redis, "hunter2", &[]);
    let login = Some(Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") });
    let server = Server::start_by_the_system(on(RedisConfig { login, ..single(&redis) }));
    ready(&server);
    let denied = || {
        let log: Vec<redis::Value> = redis.query(&["ACL", "LOG"]);
        let text = format!("{log:?}");
        (log.len(), text.contains("\"info\"") || text.contains("'info'"), text)
    };
    eventually(SOON, "it has asked", || denied().0 > 0);
    // A further look is due every 5 s; probes are every 2 s.
    let stats = redis.script_calls();
    eventually(SOON, "several probes", || redis.script_calls() >= stats + 4 * 2);
    let (entries, is_info, text) = denied();
    assert!(entries == 1 && is_info, "{text}");
    assert_eq!(redis.command_stat("info", "rejected_calls"), 1);
    assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));
}
