//! Addresses of Redis, over TLS or not.

use super::super::{accepted, parse, refused_rows, values_refused};
use super::{file, redis};

#[test]
fn addresses() {
    let no_address = " is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS";
    let too_much = ": parameters are not supported; write redis://HOST:PORT, with /NUMBER for a database";
    values_refused(
        "1:27: store.redis.nodes[0]",
        &[
            ("http://a:1", no_address),
            ("a:6379", no_address),
            ("redis://a:0", r#": "0" is not a port from 1 to 65535"#),
            ("redis://a:65536", r#": "65536" is not a port from 1 to 65535"#),
            ("redis://a:", r#": "" is not a port from 1 to 65535"#),
            ("redis://a:1/0/1", too_much),
            ("redis://a:1/0?x=1", too_much),
            ("redis://a?x=1", too_much),
            ("redis://a:1/x", r#": the database: "x" is not a whole number of at least 0"#),
            ("redis://a:1/65536", ": the database: 65536 is out of bounds: it must be from 0 to 65535"),
            ("unix:", " has no file name; write unix:PATH, such as unix:/run/weir/weir.sock"),
            ("redis://", r#": "" is not a host name or an IP address"#),
            ("redis://:1", r#": "" is not a host name or an IP address"#),
            ("redis://a b:1", r#": "a b" is not a host name or an IP address"#),
            ("redis://[::1", r#": "[" is not a host name or an IP address"#),
            ("redis://[zz]:1", r#": "[zz]" is not a host name or an IP address"#),
            ("redis://::1", r#": "" is not a host name or an IP address"#),
        ],
        |address| file(&format!("nodes: [\"{address}\"]")),
    );
}

#[test]
fn databases() {
    assert_eq!(redis(r#"nodes: ["redis://a:1"]"#).database, 0);
    assert_eq!(redis(r#"nodes: ["redis://a:1"], database: 3"#).database, 3);
    let named = redis(r#"nodes: ["redis://u:p@a:1/15"]"#);
    assert_eq!((named.database, named.nodes), (15, vec!["redis://a:1".to_owned()]));
    assert_eq!(redis(r#"nodes: ["redis://a/0"], topology: cluster, database: 0"#).database, 0);
    let sentinel = redis(r#"nodes: ["redis://a"], topology: sentinel, master_name: m, database: 2"#);
    assert_eq!(sentinel.database, 2);
    refused_rows(
        file,
        r#"
nodes: ["redis://a/3"], database: 4 => 1:53: store.redis.database: the addresses name another database
nodes: ["redis://a/3", "redis://b/4"]
    1:26: store.redis.nodes: 2 addresses are given, but `topology: single` has one; say `topology: cluster` if they are one cluster
    1:26: store.redis.nodes: they name different databases; Weir has one
nodes: ["redis://a"], topology: cluster, database: 1
    1:70: store.redis.database: 1 is not possible: a cluster has only database 0
nodes: ["redis://a/1"], topology: cluster => 1:26: store.redis.nodes: 1 is not possible: a cluster has only database 0
nodes: ["redis://a/1"], topology: sentinel, master_name: m
    1:26: store.redis.nodes: the addresses are sentinels', which have no databases: write `database`
"#,
    );
}

#[test]
fn unix_sockets() {
    for address in ["unix:/run/redis.sock", "unix:///run/redis.sock"] {
        assert_eq!(redis(&format!("nodes: [\"{address}\"]")).nodes, ["unix:/run/redis.sock"]);
    }
    refused_rows(
        file,
        r#"
nodes: ["unix:redis.sock"] => 1:27: store.redis.nodes[0]: "redis.sock" is not an absolute path; write unix:/PATH
nodes: ["unix:/a"], topology: cluster => 1:26: store.redis.nodes: a Unix socket is for `topology: single` only
nodes: ["unix:/a"], tls: { check_host_name: false }
    1:44: store.redis.tls: the addresses are not encrypted: write rediss:// for TLS
"#,
    );
}

#[test]
fn addresses_are_bounded_in_number() {
    let nodes = |count: usize| {
        let nodes: Vec<String> = (1..=count).map(|port| format!("\"redis://a:{port}\"")).collect();
        file(&format!("nodes: [{}], topology: cluster", nodes.join(", ")))
    };
    accepted(&nodes(64));
    let expected = "weir.yaml:1:26: store.redis.nodes: has 65 addresses: at most 64";
    assert_eq!(parse(&nodes(65)).unwrap_err(), expected);
}

#[test]
fn tls_is_for_all_or_none() {
    refused_rows(
        file,
        r#"
nodes: ["redis://a", "rediss://b"], topology: cluster
    1:26: store.redis.nodes: some are redis:// and some rediss://; all of them must be the same
nodes: ["redis://a"], tls: { ca_file: /x }
    1:46: store.redis.tls: the addresses are not encrypted: write rediss:// for TLS
nodes: ["rediss://a"], tls: { ca_file: /no/such }
    1:58: store.redis.tls.ca_file: "/no/such" cannot be read: No such file or directory (os error 2)
nodes: ["rediss://a"], tls: { ca_file: /dev/null } => 1:58: store.redis.tls.ca_file: "/dev/null" holds no certificate
nodes: ["rediss://a"], tls: { cert_file: /x } => 1:60: store.redis.tls.cert_file: has no `key_file`
nodes: ["rediss://a"], tls: { key_file: /x } => 1:59: store.redis.tls.key_file: has no `cert_file`
"#,
    );
}
