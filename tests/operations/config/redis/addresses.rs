//! Where Redis is, over TLS or not.

use super::super::{accepted, parse, refused, values_refused};
use super::file;

#[test]
fn addresses() {
    let no_address = " is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS";
    let too_much = ": a database number or parameters are not supported yet; write redis://HOST:PORT";
    values_refused(
        "1:27: store.redis.nodes[0]",
        &[
            ("http://a:1", no_address),
            ("a:6379", no_address),
            ("redis://a:0", r#": "0" is not a port from 1 to 65535"#),
            ("redis://a:65536", r#": "65536" is not a port from 1 to 65535"#),
            ("redis://a:", r#": "" is not a port from 1 to 65535"#),
            ("redis://a:1/0", too_much),
            ("redis://a?x=1", too_much),
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
