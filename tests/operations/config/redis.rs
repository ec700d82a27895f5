//! `store.redis`: every bound, and the error for breaking it.
//!
//! Here: its keys. In the submodules: where Redis is, and how Weir logs in.

mod addresses;
mod logins;

use weir_config::{RedisConfig, Sentinel, StoreConfig, Topology};

use self::logins::login;
use super::{accepted, parse, refused, refused_rows, section};

/// A file with this in `store.redis`, which is column 19 and what follows of line 1.
fn file(text: &str) -> String {
    section(&format!("store: {{ redis: {{ {text} }} }}"))
}

fn redis(text: &str) -> RedisConfig {
    match accepted(&file(text)).store {
        StoreConfig::Redis(redis) => redis,
        StoreConfig::Memory(_) => panic!("redis"),
    }
}

#[test]
fn keys_and_bounds() {
    refused_rows(
        file,
        r#"
nodes: [] => 1:26: store.redis.nodes: names no address; give at least one, such as redis://127.0.0.1:6379
nodes: "redis://a:1" => 1:26: store.redis.nodes: must be a list, such as [a, b], not a single value
nodes: ["redis://a:1", "redis://b:1"]
    1:26: store.redis.nodes: 2 addresses are given, but `topology: single` has one; say `topology: cluster` if they are one cluster
nodes: ["redis://a", "redis://a:6379"], topology: cluster
    1:40: store.redis.nodes[1]: redis://a:6379 is listed twice
nodes: ["redis://a"], topology: sentinel
    1:17: store.redis.master_name: is missing; name the master as the sentinels do
nodes: ["redis://a"], connect_timeout: 0s, max_waiting: 0
    1:58: store.redis.connect_timeout: 0s is out of bounds: it must be from 1ms to 60s
    1:75: store.redis.max_waiting: 0 is out of bounds: it must be from 1 to 1000000
"#,
    );
    refused(
        &[("", r#"1:17: store.redis.nodes: is missing; list addresses, such as ["redis://127.0.0.1:6379"]"#)],
        file,
    );
}

#[test]
fn sentinels() {
    let found = redis(
        r#"nodes: ["redis://a:26379", "redis://b:26379"], topology: sentinel, master_name: m, sentinel_password: s, password: p"#,
    );
    assert_eq!((found.topology, found.login), (Topology::Sentinel, login(None, "p")));
    let sentinel = Sentinel { master_name: "m".to_owned(), login: login(None, "s") };
    assert_eq!(found.sentinel, Some(sentinel));
    refused_rows(
        file,
        r#"
nodes: ["redis://a"], master_name: m => 1:54: store.redis.master_name: is for `topology: sentinel` only
nodes: ["redis://a"], sentinel_password: hunter2
    1:60: store.redis.sentinel_password: is for `topology: sentinel` only
nodes: ["redis://u:hunter2@a"], topology: sentinel, master_name: m
    1:26: store.redis.nodes: the addresses are sentinels': write `username` and `password` for Redis itself, and `sentinel_username` and `sentinel_password` for them
"#,
    );
    assert!(parse(&file(r#"nodes: ["redis://a"], topology: sentinel, master_name: """#)).is_err());
}

#[test]
fn shards_of_a_cluster() {
    refused(
        &[(
            r#"nodes: ["redis://a"], shards: 3"#,
            "1:49: store.redis.shards: is for `topology: cluster` only",
        )],
        file,
    );
    let shards = redis(r#"nodes: ["redis://a"], topology: cluster, shards: 3"#).placements.shards();
    assert_eq!(shards, Some(3));
}

/// An unknown key without a similar one gets a list of all keys, once each.
#[test]
fn unknown_keys_list_the_known_ones() {
    let file = file(r#"nodes: ["redis://a"], topology: single, zzz: 1"#);
    let expected = "weir.yaml:1:59: store.redis.zzz: unknown key; known are: nodes, database, deadline, connect_timeout, \
                    max_waiting, gather, denials_max_age, coalesce, local_budget, topology, username, password, \
                    password_file, password_command, shards, tls, master_name, sentinel_username, sentinel_password, sentinel_password_file, sentinel_password_command";
    assert_eq!(parse(&file).unwrap_err(), expected);
}
