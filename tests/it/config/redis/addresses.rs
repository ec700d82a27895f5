//! Where Redis is, over TLS or not.

use super::super::{accepted, parse, refused};
use super::file;

#[test]
fn addresses() {
    refused(
        &[
            (
                r#"nodes: ["http://a:1"]"#,
                r#"1:27: store.redis.nodes[0]: "http://a:1" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS"#,
            ),
            (
                r#"nodes: ["a:6379"]"#,
                r#"1:27: store.redis.nodes[0]: "a:6379" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS"#,
            ),
            (
                r#"nodes: ["redis://a:0"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:0": "0" is not a port from 1 to 65535"#,
            ),
            (
                r#"nodes: ["redis://a:65536"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:65536": "65536" is not a port from 1 to 65535"#,
            ),
            (
                r#"nodes: ["redis://a:"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:": "" is not a port from 1 to 65535"#,
            ),
            (
                r#"nodes: ["redis://a:1/0"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://a:1/0": a database number or parameters are not supported yet; write redis://HOST:PORT"#,
            ),
            (
                r#"nodes: ["redis://a?x=1"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://a?x=1": a database number or parameters are not supported yet; write redis://HOST:PORT"#,
            ),
            (
                r#"nodes: ["redis://"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://": "" is not a host name or an IP address"#,
            ),
            (
                r#"nodes: ["redis://:1"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://:1": "" is not a host name or an IP address"#,
            ),
            (
                r#"nodes: ["redis://a b:1"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://a b:1": "a b" is not a host name or an IP address"#,
            ),
            (
                r#"nodes: ["redis://[::1"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://[::1": "[" is not a host name or an IP address"#,
            ),
            (
                r#"nodes: ["redis://[zz]:1"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://[zz]:1": "[zz]" is not a host name or an IP address"#,
            ),
            (
                r#"nodes: ["redis://::1"]"#,
                r#"1:27: store.redis.nodes[0]: "redis://::1": "" is not a host name or an IP address"#,
            ),
        ],
        file,
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
    refused(
        &[
            (
                r#"nodes: ["redis://a", "rediss://b"], topology: cluster"#,
                "1:26: store.redis.nodes: some are redis:// and some rediss://; all of them must be the same",
            ),
            (
                r#"nodes: ["redis://a"], tls: { ca_file: /x }"#,
                "1:46: store.redis.tls: the addresses are not encrypted: write rediss:// for TLS",
            ),
            (
                r#"nodes: ["rediss://a"], tls: { ca_file: /no/such }"#,
                "1:58: store.redis.tls.ca_file: \"/no/such\" cannot be read: No such file or directory (os error 2)",
            ),
            (
                r#"nodes: ["rediss://a"], tls: { ca_file: /dev/null }"#,
                "1:58: store.redis.tls.ca_file: \"/dev/null\" holds no certificate",
            ),
            (
                r#"nodes: ["rediss://a"], tls: { cert_file: /x }"#,
                "1:60: store.redis.tls.cert_file: has no `key_file`",
            ),
            (
                r#"nodes: ["rediss://a"], tls: { key_file: /x }"#,
                "1:59: store.redis.tls.key_file: has no `cert_file`",
            ),
        ],
        file,
    );
}
