//! Logins at Redis: what is accepted, and that no message shows a secret.

use std::io::Write as _;

use weir_config::{ConfigOverrides, Login, Secret, StoreConfig};

use super::super::{refused, refused_rows};
use super::{file, redis};

pub(super) fn login(username: Option<&str>, password: &str) -> Option<Login> {
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
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"from a file\n").unwrap();
    let path = secret.path().display();
    let own = redis(&format!(r#"nodes: ["redis://a"], password_file: "{path}""#)).login.unwrap();
    assert_eq!((own.username, own.password.read().unwrap().as_ref()), (None, "from a file"));
    std::fs::write(secret.path(), "another").unwrap();
    assert_eq!(own.password.read().unwrap(), "another", "it is read whenever a connection is opened");
}

#[test]
fn secrets_are_not_shown_by_what_holds_them() {
    let shown = format!("{:?}", redis(r#"nodes: ["redis://weir:hunter2@a"]"#));
    assert!(shown.contains("weir") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn settings_go_before_the_file() {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"from outside\r\n").unwrap();
    let text = file(r#"nodes: ["redis://a"], username: one, password: inside"#);
    let with = |settings: ConfigOverrides| {
        let config = weir_config::Config::parse(&text, "weir.yaml", &settings).map_err(|e| e.to_string())?;
        let StoreConfig::Redis(redis) = config.store else { panic!("redis") };
        Ok::<_, String>(redis.login)
    };
    let path = secret.path().to_str();
    let settings = ConfigOverrides::default().with("redis_password_file", path.unwrap());
    let own = with(settings.clone()).unwrap().unwrap();
    assert_eq!(
        (own.username.as_deref(), own.password.read().unwrap().as_ref()),
        (Some("one"), "from outside")
    );
    let both = settings.with("redis_password", "hunter2");
    let expected = "--redis-password-file or WEIR_REDIS_PASSWORD_FILE: store.redis.password_file: there is a password too";
    assert_eq!(with(both).unwrap_err(), expected);
    let settings = ConfigOverrides::default().with("redis_username", "two").with("redis_password", "p");
    assert_eq!(with(settings).unwrap(), login(Some("two"), "p"));
    let settings = ConfigOverrides::default().with("redis_password", "");
    assert_eq!(with(settings).unwrap_err(), "WEIR_REDIS_PASSWORD: store.redis.password: must not be empty");
}

#[test]
fn a_command_that_prints_the_password() {
    let own =
        redis(r#"nodes: ["redis://a"], username: weir, password_command: [/bin/token, a b, a b]"#).login;
    let own = own.unwrap();
    assert_eq!(own.username.as_deref(), Some("weir"));
    let words: Vec<&str> = own.password.command().unwrap().iter().map(String::as_str).collect();
    assert_eq!(words, ["/bin/token", "a b", "a b"]);
    let sentinels = redis(
        r#"nodes: ["redis://a"], topology: sentinel, master_name: m, sentinel_password_command: [/bin/token]"#,
    );
    assert!(sentinels.sentinel.unwrap().login.unwrap().password.command().is_some());
    let long = "x".repeat(4097);
    let many = vec!["/x"; 65].join(", ");
    refused_rows(
        file,
        r#"
nodes: ["redis://a"], password_command: token
    1:59: store.redis.password_command: must be a list, such as [a, b], not a single value
nodes: ["redis://a"], password_command: []
    1:59: store.redis.password_command: has 0 words: it must have from 1 to 64
nodes: ["redis://a"], password_command: [token]
    1:60: store.redis.password_command[0]: "token" is no absolute path; the command has an empty environment, and so no PATH
nodes: ["redis://a"], password: hunter2, password_command: [/x]
    1:78: store.redis.password_command: there is a `password` too
nodes: ["redis://a"], sentinel_password_command: [/x]
    1:17: store.redis.sentinel_password: is for `topology: sentinel` only
"#,
    );
    refused(
        &[
            (
                &format!(r#"nodes: ["redis://a"], password_command: [{many}]"#),
                "1:59: store.redis.password_command: has 65 words: it must have from 1 to 64",
            ),
            (
                &format!(r#"nodes: ["redis://a"], password_command: [/x, {long}]"#),
                &format!(
                    r#"1:64: store.redis.password_command[1]: "{}…" is 4097 bytes long: at most 4096"#,
                    &long[..64]
                ),
            ),
        ],
        file,
    );
}

#[test]
fn logins_that_cannot_be() {
    refused_rows(
        file,
        r#"
nodes: ["redis://a"], username: weir => 1:51: store.redis.username: has no password; give one
nodes: ["redis://a"], password: "" => 1:51: store.redis.password: must not be empty
nodes: ["redis://a"], password: x, password_file: /dev/null
    1:69: store.redis.password_file: there is a `password` too
    1:69: store.redis.password_file: what "/dev/null" says must not be empty
nodes: ["redis://a"], password_file: no/such
    1:56: store.redis.password_file: "no/such" cannot be read: No such file or directory (os error 2)
nodes: ["redis://u:hunter2@a"], password: hunter3
    1:26: store.redis.nodes: they name a user or password, and `username` or `password` is set too
nodes: ["redis://u:hunter2@a", "redis://u:hunter3@b"], topology: cluster
    1:26: store.redis.nodes: they name different users or passwords; Weir has one
nodes: ["redis://hunter2@a"]
    1:27: store.redis.nodes[0]: "…@a": there is a user but no password; write redis://USER:PASSWORD@HOST
nodes: ["redis://u:hunter/2@a"]
    1:27: store.redis.nodes[0]: "…@a": in a user or password write / as %2F, ? as %3F, # as %23 and @ as %40
nodes: ["redis://u:hunter%2@a"] => 1:27: store.redis.nodes[0]: "…@a": a % in a user or password must be written as %25
nodes: ["http://u:hunter2@a"]
    1:27: store.redis.nodes[0]: "…@a" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS
"#,
    );
}
