//! Where Redis is, as the variables of the reference say it.

use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::Ratelimit;
use super::variables::refused;
use crate::support::certificates::Authority;
use crate::support::sentinels::Sentinels;
use crate::support::{Cluster, RedisServer, ports, scratch};

/// Starts with these variables of Redis, and counts until the limit of 2 is used.
async fn counts(more: &[(&str, &str)]) {
    let all = [&[("WEIR_STORE", "")][..], more].concat();
    let started = Ratelimit::start(&all);
    // A connection may not be there yet.
    let mut codes = Vec::new();
    while codes.len() < 3 {
        codes.extend(started.try_asks("v").await);
    }
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::OverLimit], "{more:?}");
    let (_, log) = started.stop();
    assert!(!log.contains("hunter2"), "{log}");
}

/// The number of keys in a database.
fn keys(redis: &RedisServer, database: u32) -> i64 {
    let mut connection = redis.connection();
    redis::cmd("SELECT").arg(database).exec(&mut connection).unwrap();
    redis::cmd("DBSIZE").query(&mut connection).unwrap()
}

/// The reference's default is a Unix socket.
#[tokio::test]
async fn a_unix_socket_with_a_user() {
    let folder = scratch::dir("uds-");
    let path = folder.path().join("redis.sock").display().to_string();
    let redis = RedisServer::builder().arg("--unixsocket").arg(&path).start();
    redis.cli(&["ACL", "SETUSER", "envoy", "on", ">hunter2", "~*", "+@all"]);
    redis.cli(&["ACL", "SETUSER", "default", "off"]);
    counts(&[("REDIS_URL", &path), ("REDIS_AUTH", "envoy:hunter2")]).await;
}

#[tokio::test]
async fn a_database_in_the_address() {
    let redis = RedisServer::start();
    redis.cli(&["CONFIG", "SET", "requirepass", ""]);
    let tcp = ("REDIS_SOCKET_TYPE", "tcp");
    for (url, database) in [
        (format!("{}/5", redis.url()), 5),
        (format!("{}?db=6", redis.url()), 6),
        (format!("{}/?db=7", redis.url()), 7),
        (redis.addr(), 0),
    ] {
        counts(&[tcp, ("REDIS_URL", &url)]).await;
        assert!(keys(&redis, database) > 0, "{url}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name() {
    let authority = Authority::create();
    let issued = authority.issue("redis", &["redis.example"]);
    let port = ports::free();
    let mut builder = RedisServer::builder();
    for arg in authority.redis_args(port, &issued, false) {
        builder = builder.arg(arg);
    }
    let _redis = builder.start();
    let (url, ca) = (format!("127.0.0.1:{port}"), authority.ca_file().display().to_string());
    counts(&[
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &url),
        ("REDIS_TLS", "true"),
        ("REDIS_TLS_CACERT", &ca),
        ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true"),
    ])
    .await;
}

#[tokio::test]
async fn a_master_that_sentinels_name() {
    let sentinels = Sentinels::start();
    for server in &sentinels.servers {
        server.cli(&["ACL", "SETUSER", "envoy", "on", ">hunter2", "~*", "+@all"]);
    }
    for index in 0..3 {
        let rights = ["ACL", "SETUSER", "asker", "on", ">hunter2", "+@all"];
        let _: redis::Value = sentinels.query(index, &rights).unwrap();
    }
    let nodes: Vec<String> = sentinels.urls().iter().map(|url| url.replace("redis://", "")).collect();
    counts(&[
        ("REDIS_TYPE", "Sentinel"),
        ("REDIS_URL", &format!("zoo,{}", nodes.join(","))),
        ("REDIS_AUTH", "envoy:hunter2"),
        ("REDIS_SENTINEL_AUTH", "asker:hunter2"),
    ])
    .await;
    assert!(keys(&sentinels.servers[0], 0) > 0);
}

#[tokio::test]
async fn a_cluster() {
    let cluster = Cluster::start(3, 0);
    let nodes: Vec<String> = cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
    counts(&[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", &nodes.join(","))]).await;
}

#[test]
fn what_cannot_be() {
    for (more, reason) in [
        (
            &[("REDIS_URL", "redis:6379")][..],
            "REDIS_URL: \"redis:6379\" is not the absolute path of a Unix socket",
        ),
        (
            &[("REDIS_URL", "/r.sock"), ("REDIS_TLS", "true")],
            "REDIS_URL: it is a Unix socket, which has no TLS",
        ),
        (
            &[("REDIS_URL", "redis://u:hunter2@a/x"), ("REDIS_SOCKET_TYPE", "tcp")],
            "the database: \"x\" is not a whole number",
        ),
        (&[("REDIS_URL", "a:1,b:1/3"), ("REDIS_TYPE", "cluster")], "a cluster has only database 0"),
    ] {
        let said = refused(&[&[("WEIR_STORE", "")][..], more].concat());
        assert!(said.contains(reason) && !said.contains("hunter2"), "{more:?}: {said}");
    }
}
