//! Where Redis is, as the variables of the reference say it.

use std::time::{Duration, Instant};

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::Ratelimit;
use super::variables::refused;
use crate::support::certificates::{Authority, Issued, own_authority};
use crate::support::sentinels::Sentinels;
use crate::support::{Cluster, RedisServer, SOON, eventually, eventually_async, ports, scratch};

/// Starts with these variables of Redis, and counts until the limit of 2 is used.
async fn counts(more: &[(&str, &str)]) {
    let all = [&[("WEIR_STORE", "")][..], more].concat();
    let started = Ratelimit::start(&all);
    let codes = [started.asks("v").await, started.asks("v").await, started.asks("v").await];
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

/// A file with the user and the password. It is read for each connection.
#[tokio::test]
async fn a_user_in_a_file_that_changes() {
    let folder = scratch::dir("auth-");
    let file = folder.path().join("auth");
    std::fs::write(&file, "envoy:hunter2\n").unwrap();
    let redis = RedisServer::start();
    redis.cli(&["ACL", "SETUSER", "envoy", "on", ">hunter2", "~*", "+@all"]);
    redis.cli(&["ACL", "SETUSER", "other", "on", ">hunter2:b", "~*", "+@all"]);
    let (admin, killed) = (redis.connection(), redis.addr());
    redis.cli(&["ACL", "SETUSER", "default", "resetpass", ">adm"]);
    let started = Ratelimit::start(&[
        ("WEIR_STORE", ""),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &format!("redis://ignored:hunter2ignored@{killed}")),
        ("REDIS_AUTH_FILE", file.to_str().unwrap()),
        ("LOG_LEVEL", "trace"),
    ]);
    let asks = async || loop {
        // A call that fails may have been charged.
        if let Some(code) = started.try_asks("of twenty").await {
            return code;
        }
    };
    assert_eq!(asks().await, Code::Ok);
    std::fs::write(&file, "other:hunter2:b").unwrap();
    let mut admin = admin;
    redis::cmd("ACL").arg(&["DELUSER", "envoy"]).exec(&mut admin).unwrap();
    assert_eq!(asks().await, Code::Ok);
    let users: String = redis::cmd("CLIENT").arg("LIST").query(&mut admin).unwrap();
    assert!(users.contains("user=other") && !users.contains("user=envoy"), "{users}");
    let (_, log) = started.stop();
    assert!(!log.contains("hunter2"), "{log}");
}

/// One of the variables names the password, and it takes precedence over the address.
#[tokio::test]
async fn a_user_of_a_variable_and_one_of_the_address() {
    let redis = RedisServer::start();
    redis.cli(&["ACL", "SETUSER", "envoy", "on", ">hunter2", "~*", "+@all"]);
    let (mut admin, tcp) = (redis.connection(), ("REDIS_SOCKET_TYPE", "tcp"));
    redis.cli(&["ACL", "SETUSER", "default", "off"]);
    let folder = scratch::dir("auth-");
    let file = folder.path().join("auth");
    std::fs::write(&file, "hunter2").unwrap();
    let url = format!("redis://nobody:hunter2no@{}", redis.addr());
    let url = ("REDIS_URL", url.as_str());
    let forget = |admin: &mut redis::Connection| redis::cmd("FLUSHALL").exec(admin).unwrap();
    counts(&[tcp, url, ("REDIS_AUTH", "envoy:hunter2")]).await;
    forget(&mut admin);
    let native = [("WEIR_REDIS_USERNAME", "envoy"), ("WEIR_REDIS_PASSWORD_FILE", file.to_str().unwrap())];
    counts(&[tcp, url, native[0], native[1], ("REDIS_AUTH", "envoy:hunter2wrong")]).await;
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

/// What `openssl req -x509` makes has CA:TRUE, and was refused as a server's certificate.
#[tokio::test]
async fn a_certificate_that_is_its_own_authority() {
    let other_name = ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true");
    for (name, more) in [("127.0.0.1", &[][..]), ("redis.example", &[other_name][..])] {
        let (_folder, own) = own_authority(&[name], 2096);
        let (redis, port) = redis_with(&own);
        let ca = own.cert.display().to_string();
        let url = format!("127.0.0.1:{port}");
        let tls = [
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", url.as_str()),
            ("REDIS_TLS", "true"),
            ("REDIS_TLS_CACERT", ca.as_str()),
        ];
        counts(&[&tls[..], more].concat()).await;
        drop(redis);
    }
}

/// Its names, its time and its bytes are checked still.
#[test]
fn a_certificate_that_is_its_own_authority_for_another_name_or_time_is_refused() {
    let cases = [("redis.example", 2096, true), ("127.0.0.1", 2001, true), ("127.0.0.1", 2096, false)];
    for (name, year, is_trusted) in cases {
        let (_folder, own) = own_authority(&[name], year);
        let (_other_folder, other) = own_authority(&[name], year);
        let (_redis, port) = redis_with(&own);
        let trusted = if is_trusted { &own } else { &other };
        let started = Ratelimit::spawn(&[
            ("WEIR_STORE", ""),
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", &format!("127.0.0.1:{port}")),
            ("REDIS_TLS", "true"),
            ("REDIS_TLS_CACERT", &trusted.cert.display().to_string()),
        ]);
        let health = || started.get(8080, "/healthcheck").map(|(status, _)| status);
        eventually(SOON, "its port is open", || health().is_some());
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            assert_eq!(health(), Some(500), "{name} {year} {is_trusted}");
        }
    }
}

/// A Redis with TLS under this certificate.
fn redis_with(own: &Issued) -> (RedisServer, u16) {
    let port = ports::free();
    let path = |path: &std::path::Path| path.display().to_string();
    let builder = RedisServer::builder()
        .arg("--tls-port")
        .arg(port.to_string())
        .arg("--tls-cert-file")
        .arg(path(&own.cert))
        .arg("--tls-key-file")
        .arg(path(&own.key))
        .arg("--tls-ca-cert-file")
        .arg(path(&own.cert))
        .arg("--tls-auth-clients")
        .arg("no");
    (builder.start(), port)
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

/// A roll-out with a wrong address was healthy, and replaced nodes that worked.
#[tokio::test]
async fn it_is_unhealthy_until_redis_has_answered_once_and_never_again_because_of_redis() {
    let port = ports::free();
    let url = format!("127.0.0.1:{port}");
    let started = Ratelimit::spawn(&[("WEIR_STORE", ""), ("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &url)]);
    let health = || started.get(8080, "/healthcheck").map(|(status, _)| status);
    let serves = async || {
        let mut client = HealthClient::new(started.channel(8081).await);
        let request = HealthCheckRequest { service: "ratelimit".to_owned() };
        client.check(request).await.unwrap().into_inner().status() == ServingStatus::Serving
    };
    eventually(SOON, "its port is open, and it is not healthy", || health() == Some(500));
    assert!(!serves().await, "gRPC health says the same");
    // It says so for as long as nobody answers: many times the interval of the monitor.
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        assert_eq!(health(), Some(500));
    }
    let redis = RedisServer::start_on(port);
    eventually(SOON, "Redis has answered", || health() == Some(200));
    assert!(serves().await);
    assert_eq!(started.asks("v").await, Code::Ok, "the first call after that does not fail");
    redis.kill();
    eventually_async(SOON, "calls fail", async || started.try_asks("other").await.is_none()).await;
    assert_eq!(health(), Some(200), "a later outage changes nothing");
    assert!(serves().await);
}

/// In 2 of 8 starts behind sentinels, the first call failed while health said yes.
#[tokio::test]
async fn the_first_call_behind_sentinels_does_not_fail() {
    let sentinels = Sentinels::start();
    let nodes: Vec<String> = sentinels.urls().iter().map(|url| url.replace("redis://", "")).collect();
    let url = format!("zoo,{}", nodes.join(","));
    for start in 0..8 {
        let started =
            Ratelimit::start(&[("WEIR_STORE", ""), ("REDIS_TYPE", "SENTINEL"), ("REDIS_URL", &url)]);
        assert_eq!(started.try_asks(&format!("v{start}")).await, Some(Code::Ok), "start {start}");
    }
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
        (
            &[("REDIS_URL", "/r.sock"), ("REDIS_AUTH", "hunter2"), ("REDIS_AUTH_FILE", "/a")],
            "REDIS_AUTH_FILE: REDIS_AUTH is set too: set one of them",
        ),
        (
            &[("REDIS_URL", "/r.sock"), ("REDIS_AUTH_FILE", "/no/such")],
            "REDIS_AUTH_FILE: store.redis.password_file: \"/no/such\" cannot be read",
        ),
    ] {
        let said = refused(&[&[("WEIR_STORE", "")][..], more].concat());
        assert!(said.contains(reason) && !said.contains("hunter2"), "{more:?}: {said}");
    }
}
