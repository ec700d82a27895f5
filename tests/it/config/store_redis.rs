//! `store.redis`: every bound, and what breaking it is told.

use super::{accepted, parse, refused, section};

#[test]
fn keys_and_bounds() {
    refused(
        &[
            (
                "store: { redis: {} }",
                r#"1:17: store.redis.nodes: is missing; list addresses, such as ["redis://127.0.0.1:6379"]"#,
            ),
            (
                "store: { redis: { nodes: [] } }",
                "1:26: store.redis.nodes: names no address; give at least one, such as redis://127.0.0.1:6379",
            ),
            (
                r#"store: { redis: { nodes: "redis://a:1" } }"#,
                "1:26: store.redis.nodes: must be a list, such as [a, b], not a single value",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a:1", "redis://b:1"] } }"#,
                "1:26: store.redis.nodes: 2 addresses are given, but `topology: single` has one; say `topology: cluster` if they are one cluster",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a", "redis://a:6379"], topology: cluster } }"#,
                "1:40: store.redis.nodes[1]: redis://a:6379 is listed twice",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], topology: sentinel } }"#,
                "1:17: store.redis.master_name: is missing; name the master as the sentinels do",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], topology: ring } }"#,
                r#"1:51: store.redis.topology: "ring" is not one of single, cluster, sentinel"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], deadline: 999us } }"#,
                "1:51: store.redis.deadline: 999us is out of bounds: it must be from 1ms to 60s",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], deadline: 61s } }"#,
                "1:51: store.redis.deadline: 61s is out of bounds: it must be from 1ms to 60s",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], denials_max_age: 61s } }"#,
                "1:58: store.redis.denials_max_age: 61s is out of bounds: it must be from 0s to 60s",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], connect_timeout: 0s, max_waiting: 0 } }"#,
                "1:58: store.redis.connect_timeout: 0s is out of bounds: it must be from 1ms to 60s\n1:75: store.redis.max_waiting: 0 is out of bounds: it must be from 1 to 1000000",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], max_waiting: 1_000_001 } }"#,
                "1:54: store.redis.max_waiting: 1000001 is out of bounds: it must be from 1 to 1000000",
            ),
        ],
        section,
    );
}

#[test]
fn addresses() {
    refused(
        &[
            (
                r#"store: { redis: { nodes: ["http://a:1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "http://a:1" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS"#,
            ),
            (
                r#"store: { redis: { nodes: ["a:6379"] } }"#,
                r#"1:27: store.redis.nodes[0]: "a:6379" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a:0"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:0": "0" is not a port from 1 to 65535"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a:65536"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:65536": "65536" is not a port from 1 to 65535"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a:"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:": "" is not a port from 1 to 65535"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a:1/0"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:1/0": a database number or parameters are not supported yet; write redis://HOST:PORT"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a?x=1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://a?x=1": a database number or parameters are not supported yet; write redis://HOST:PORT"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://": "" is not a host name or an IP address"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://:1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://:1": "" is not a host name or an IP address"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://a b:1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://a b:1": "a b" is not a host name or an IP address"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://[::1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://[::1": "[" is not a host name or an IP address"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://[zz]:1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://[zz]:1": "[zz]" is not a host name or an IP address"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://::1"] } }"#,
                r#"1:27: store.redis.nodes[0]: "redis://::1": "" is not a host name or an IP address"#,
            ),
        ],
        section,
    );
}

#[test]
fn addresses_are_bounded_in_number() {
    let file = |count: usize| {
        let nodes: Vec<String> = (1..=count).map(|port| format!("\"redis://a:{port}\"")).collect();
        section(&format!("store: {{ redis: {{ nodes: [{}], topology: cluster }} }}", nodes.join(", ")))
    };
    accepted(&file(64));
    let expected = "weir.yaml:1:26: store.redis.nodes: has 65 addresses: at most 64";
    assert_eq!(parse(&file(65)).unwrap_err(), expected);
}

/// Where nothing is alike, all that could be written is listed, once each.
#[test]
fn unknown_keys_list_the_known_ones() {
    let file = section("store: { redis: { nodes: [\"redis://a\"], topology: single, zzz: 1 } }");
    let expected = "weir.yaml:1:59: store.redis.zzz: unknown key; known are: nodes, deadline, connect_timeout, \
                    max_waiting, denials_max_age, coalesce, topology, username, password, password_file, \
                    tls, master_name, sentinel_username, sentinel_password, sentinel_password_file";
    assert_eq!(parse(&file).unwrap_err(), expected);
}
