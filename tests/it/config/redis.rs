//! Who we are to Redis, over TLS or not, and which master: what is accepted, and that no secret is told.

use std::io::Write as _;

use weir::config::{Login, Overrides, RedisConfig, Secret, Sentinel, StoreConfig, Topology};

use super::{accepted, parse, refused, section};

fn redis(text: &str) -> RedisConfig {
    match accepted(&section(&format!("store: {{ redis: {{ {text} }} }}"))).store {
        StoreConfig::Redis(redis) => redis,
        StoreConfig::Memory(_) => panic!("redis"),
    }
}

fn login(username: Option<&str>, password: &str) -> Option<Login> {
    Some(Login { username: username.map(str::to_owned), password: Secret::new(password) })
}

#[test]
fn a_login_from_the_section_or_the_address() {
    assert_eq!(redis(r#"nodes: ["redis://a"], username: weir, password: p"#).login, login(Some("weir"), "p"));
    assert_eq!(redis(r#"nodes: ["redis://a"], password: "12""#).login, login(None, "12"));
    let named = redis(
        r#"nodes: ["redis://weir:p%40%3a:@a:1", "redis://weir:p%40%3A:@b", "redis://c"], topology: cluster"#,
    );
    assert_eq!(named.login, login(Some("weir"), "p@::"));
    assert_eq!(named.nodes, ["redis://a:1", "redis://b:6379", "redis://c:6379"]);
    assert_eq!(redis(r#"nodes: ["redis://:p@a"]"#).login, login(None, "p"));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"from a file\n").unwrap();
    let path = file.path().display();
    assert_eq!(
        redis(&format!(r#"nodes: ["redis://a"], password_file: "{path}""#)).login,
        login(None, "from a file")
    );
}

#[test]
fn secrets_are_not_shown_by_what_holds_them() {
    let shown = format!("{:?}", redis(r#"nodes: ["redis://weir:hunter2@a"]"#));
    assert!(shown.contains("weir") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn settings_go_before_the_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"from outside\r\n").unwrap();
    let text = section(r#"store: { redis: { nodes: ["redis://a"], username: one, password: inside } }"#);
    let with = |settings: Overrides| {
        let config = weir::config::Config::parse(&text, "weir.yaml", &settings).map_err(|e| e.to_string())?;
        let StoreConfig::Redis(redis) = config.store else { panic!("redis") };
        Ok::<_, String>(redis.login)
    };
    let some = |text: &str| Some(text.to_owned());
    let path = file.path().to_str();
    let settings = Overrides { redis_password_file: path.map(str::to_owned), ..Overrides::default() };
    assert_eq!(with(settings.clone()).unwrap(), login(Some("one"), "from outside"));
    let both = Overrides { redis_password: some("hunter2"), ..settings };
    let expected = "--redis-password-file or WEIR_REDIS_PASSWORD_FILE: store.redis.password_file: there is a password too";
    assert_eq!(with(both).unwrap_err(), expected);
    let settings =
        Overrides { redis_username: some("two"), redis_password: some("p"), ..Overrides::default() };
    assert_eq!(with(settings).unwrap(), login(Some("two"), "p"));
    let settings = Overrides { redis_password: some(""), ..Overrides::default() };
    assert_eq!(with(settings).unwrap_err(), "WEIR_REDIS_PASSWORD: store.redis.password: must not be empty");
}

#[test]
fn logins_that_cannot_be() {
    refused(
        &[
            (
                r#"store: { redis: { nodes: ["redis://a"], username: weir } }"#,
                "1:51: store.redis.username: has no password; give one",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], password: "" } }"#,
                "1:51: store.redis.password: must not be empty",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], password: x, password_file: /dev/null } }"#,
                "1:69: store.redis.password_file: there is a `password` too\n1:69: store.redis.password_file: what \"/dev/null\" says must not be empty",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], password_file: no/such } }"#,
                "1:56: store.redis.password_file: \"no/such\" cannot be read: No such file or directory (os error 2)",
            ),
            (
                r#"store: { redis: { nodes: ["redis://u:hunter2@a"], password: hunter3 } }"#,
                "1:26: store.redis.nodes: they name a user or password, and `username` or `password` is set too",
            ),
            (
                r#"store: { redis: { nodes: ["redis://u:hunter2@a", "redis://u:hunter3@b"], topology: cluster } }"#,
                "1:26: store.redis.nodes: they name different users or passwords; Weir has one",
            ),
            (
                r#"store: { redis: { nodes: ["redis://hunter2@a"] } }"#,
                r#"1:27: store.redis.nodes[0]: "…@a": there is a user but no password; write redis://USER:PASSWORD@HOST"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://u:hunter/2@a"] } }"#,
                r#"1:27: store.redis.nodes[0]: "…@a": in a user or password write / as %2F, ? as %3F, # as %23 and @ as %40"#,
            ),
            (
                r#"store: { redis: { nodes: ["redis://u:hunter%2@a"] } }"#,
                r#"1:27: store.redis.nodes[0]: "…@a": a % in a user or password must be written as %25"#,
            ),
            (
                r#"store: { redis: { nodes: ["http://u:hunter2@a"] } }"#,
                r#"1:27: store.redis.nodes[0]: "…@a" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS"#,
            ),
        ],
        section,
    );
}

#[test]
fn tls_is_for_all_or_none() {
    refused(
        &[
            (
                r#"store: { redis: { nodes: ["redis://a", "rediss://b"], topology: cluster } }"#,
                "1:26: store.redis.nodes: some are redis:// and some rediss://; all of them must be the same",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], tls: { ca_file: /x } } }"#,
                "1:46: store.redis.tls: the addresses are not encrypted: write rediss:// for TLS",
            ),
            (
                r#"store: { redis: { nodes: ["rediss://a"], tls: { ca_file: /no/such } } }"#,
                "1:58: store.redis.tls.ca_file: \"/no/such\" cannot be read: No such file or directory (os error 2)",
            ),
            (
                r#"store: { redis: { nodes: ["rediss://a"], tls: { ca_file: /dev/null } } }"#,
                "1:58: store.redis.tls.ca_file: \"/dev/null\" holds no certificate",
            ),
            (
                r#"store: { redis: { nodes: ["rediss://a"], tls: { cert_file: /x } } }"#,
                "1:60: store.redis.tls.cert_file: has no `key_file`",
            ),
            (
                r#"store: { redis: { nodes: ["rediss://a"], tls: { key_file: /x } } }"#,
                "1:59: store.redis.tls.key_file: has no `cert_file`",
            ),
        ],
        section,
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
    refused(
        &[
            (
                r#"store: { redis: { nodes: ["redis://a"], master_name: m } }"#,
                "1:54: store.redis.master_name: is for `topology: sentinel` only",
            ),
            (
                r#"store: { redis: { nodes: ["redis://a"], sentinel_password: hunter2 } }"#,
                "1:60: store.redis.sentinel_password: is for `topology: sentinel` only",
            ),
            (
                r#"store: { redis: { nodes: ["redis://u:hunter2@a"], topology: sentinel, master_name: m } }"#,
                "1:26: store.redis.nodes: the addresses are sentinels': write `username` and `password` for Redis itself, and `sentinel_username` and `sentinel_password` for them",
            ),
        ],
        section,
    );
    assert!(
        parse(&section(r#"store: { redis: { nodes: ["redis://a"], topology: sentinel, master_name: "" } }"#))
            .is_err()
    );
}
