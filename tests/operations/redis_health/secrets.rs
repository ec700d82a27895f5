//! Nodes with another `key_secret` count for themselves, which doubles every limit. They see each other.

use weir_config::{Config, Login, RedisConfig, Secret};
use weir_core::key::KeySecret;

use super::{on, ready, says, single};
use crate::failure::access::add_user;
use crate::support::server::Server;
use crate::support::{RedisServer, SOON, eventually};

const MISMATCH: &str = "weir_store_key_secret_mismatch";

fn with_secret(redis: &RedisServer, secret: &str) -> Server {
    let key_secret = Some(KeySecret::from_text(secret));
    Server::start_by_the_system(Config { key_secret, ..on(single(redis)) })
}

fn mismatch(server: &Server) -> bool {
    let page = server.get("/metrics").1;
    page.lines().any(|line| line == format!("{MISMATCH} 1"))
}

#[test]
fn nodes_with_other_secrets_see_each_other() {
    let redis = RedisServer::start();
    let fingerprint =
        || redis.try_query::<String>(&["GET", "weir:{key_secret}:fingerprint"]).unwrap_or_default();
    let one = with_secret(&redis, "one");
    let of_one = KeySecret::from_text("one").fingerprint();
    eventually(SOON, "the first one's fingerprint", || fingerprint() == of_one);
    let same = with_secret(&redis, "one");
    ready(&same);
    let two = with_secret(&redis, "two");
    let parts = ["note: another node has another key_secret", &of_one, "set the same `store.key_secret`"];
    let note = says(&two, &parts);
    assert!(!note.contains("two") && mismatch(&two), "{note}");
    assert!(two.get("/readyz").1.starts_with("ready\n"), "it continues");
    eventually(SOON, "the second one's fingerprint", || fingerprint() != of_one);
    // As the first one would be a moment later.
    let third = with_secret(&redis, "one");
    says(&third, &parts[..1]);
    assert!(mismatch(&third) && !mismatch(&same));
    drop(one);
}

/// A user who may not look is logged once, and the service continues.
#[test]
fn a_user_who_may_not_look_goes_on() {
    let redis = RedisServer::start();
    add_user(&redis, "hunter2", &["+info", "resetkeys", "~weir:{????}*"]);
    let login = Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") };
    let config = RedisConfig { login: Some(login), ..single(&redis) };
    let server = Server::start_by_the_system(on(config));
    ready(&server);
    let refused = || {
        let log: Vec<redis::Value> = redis.query(&["ACL", "LOG"]);
        format!("{log:?}").contains("weir:{key_secret}:fingerprint")
    };
    eventually(SOON, "it has asked", refused);
    assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));
}
