//! A master that sentinels watch: killed, frozen, demoted. The promoted replica decides within a second.

use std::time::{Duration, Instant};
use weir_testing::scratch;

use weir_config::{ClientFiles, Identity};
use weir_config::{Login, RedisConfig, Secret, Sentinel, Topology};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_units::Micros;

use super::{DEADLINE, SLACK, allow, charge, config, in_time, recovered, shared, store_unwatched, watchful};
use crate::support::certificates::{Authority, Issued};
use crate::support::sentinels::Sentinels;
use crate::support::{RedisServer, SOON, Stopwatch, eventually, watched};

async fn ready(sentinels: &Sentinels) -> RedisStore {
    let sentinel = Some(Sentinel { master_name: "zoo".to_owned(), login: None });
    let config = RedisConfig { sentinel, ..watchful(sentinels.urls(), Topology::Sentinel) };
    let store = watched(&shared(&config)).await;
    recovered("the first decision", async || allow(&store, "r").await == Ok(true)).await;
    store
}

fn is_master(redis: &RedisServer) -> bool {
    let role: redis::RedisResult<Vec<redis::Value>> = redis.try_query(&["ROLE"]);
    role.is_ok_and(|role| matches!(&role[0], redis::Value::BulkString(role) if role == b"master"))
}

/// Asks until a sentinel names the promoted replica, and then until that one decides. No call waits longer than its
/// deadline.
async fn promoted(store: &RedisStore, sentinels: &Sentinels) {
    let (watch, started) = (Stopwatch::start(), Instant::now());
    let mut longest = Duration::ZERO;
    while !sentinels.name(1) {
        let (_, took) = watch.time(in_time(store, "r")).await;
        longest = longest.max(took);
        // Sentinels that find that time has jumped, as it does on a machine that stalls, wait for 30 s.
        assert!(started.elapsed() < SOON * 2, "no promotion");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let decides = async || in_time(store, "r").await == Ok(true) && !sentinels.servers[1].keys().is_empty();
    recovered("decisions after a sentinel said so", decides).await;
    println!("longest wait {longest:?}");
    assert!(longest < DEADLINE + SLACK, "a caller waited {longest:?}");
}

#[tokio::test]
async fn master_killed() {
    let mut sentinels = Sentinels::start();
    let store = ready(&sentinels).await;
    // The others have the quorum, and answer in its place.
    sentinels.kill_sentinel(0);
    sentinels.servers[0].kill();
    promoted(&store, &sentinels).await;
}

/// The frozen master answers nothing; when it thaws it is demoted, and gets no decision.
#[tokio::test]
async fn master_frozen() {
    let sentinels = Sentinels::start();
    let store = ready(&sentinels).await;
    sentinels.servers[0].freeze();
    promoted(&store, &sentinels).await;
    sentinels.servers[0].thaw();
    for _ in 0..100 {
        assert_eq!(allow(&store, "r").await, Ok(true));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A clean failover: the old master lives on and answers READONLY. One or two calls get that answer, and later calls
/// go to the new master.
#[tokio::test]
async fn master_demoted() {
    let sentinels = Sentinels::start();
    let store = ready(&sentinels).await;
    let _: redis::Value = sentinels.query(1, &["SENTINEL", "FAILOVER", "zoo"]).unwrap();
    promoted(&store, &sentinels).await;
    eventually(SOON, "the old master is a replica", || !is_master(&sentinels.servers[0]));
    // The sentinels have cut its connections, which one call may hear of.
    let _ = allow(&store, "r").await;
    let mut answered = 0;
    recovered("fifty answers in a row", async || {
        answered = if allow(&store, "r").await == Ok(true) { answered + 1 } else { 0 };
        answered == 50
    })
    .await;
    assert_eq!(sentinels.servers[1].keys().len(), 1);
}

/// Users with the narrowest rights, at the sentinels and at the master.
#[tokio::test]
async fn logins_at_the_sentinels_and_at_the_master() {
    let sentinels = Sentinels::start();
    for server in &sentinels.servers {
        super::access::add_user(server, "hunter2", &["+role"]);
    }
    let rights = ["ACL", "SETUSER", "asker", "on", ">hunter3", "+sentinel|get-master-addr-by-name"];
    for index in 0..3 {
        let _: redis::Value = sentinels.query(index, &rights).unwrap();
    }
    let files = tempfile::tempdir().unwrap();
    let login = |name: &str, password: &str| {
        let file = scratch::file(files.path(), name, password);
        Some(Login { username: Some(name.to_owned()), password: Secret::in_file(file) })
    };
    let sentinel = Sentinel { master_name: "zoo".to_owned(), login: login("asker", "hunter3") };
    let config = RedisConfig {
        sentinel: Some(sentinel),
        login: login("weir", "hunter2"),
        ..config(sentinels.urls(), Topology::Sentinel)
    };
    let store = watched(&shared(&config)).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    // Both passwords change while it runs.
    for server in &sentinels.servers {
        super::access::add_user(server, "hunter4", &["+role"]);
    }
    for index in 0..3 {
        let _: redis::Value =
            sentinels.query(index, &["ACL", "SETUSER", "asker", "resetpass", ">hunter5"]).unwrap();
    }
    login("weir", "hunter4");
    login("asker", "hunter5");
    let kill = ["CLIENT", "KILL", "USER"];
    for index in 0..3 {
        let _: redis::Value = sentinels.query(index, &[&kill[..], &["asker"]].concat()).unwrap();
    }
    for server in &sentinels.servers {
        server.cli(&[&kill[..], &["weir"]].concat());
    }
    recovered("decisions with the new passwords", async || charge(&store, "r", 0).await == Ok(99_999)).await;
    sentinels.servers[0].kill();
    promoted(&store, &sentinels).await;
}

/// Everything at once: sentinels, master and replica speak TLS and require a certificate. A store
/// without one gets no decision. A store with one uses the promoted replica within a second, also over TLS.
#[tokio::test]
async fn sentinels_over_tls() {
    let authority = Authority::create();
    let sentinels = Sentinels::start_secured(&authority, &authority.issue("server", &["127.0.0.1"]));
    let files = |identity| Some(ClientFiles { ca_file: Some(authority.ca_file()), identity });
    let sentinel = Some(Sentinel { master_name: "zoo".to_owned(), login: None });
    let anonymous =
        RedisConfig { sentinel, tls: files(None), ..config(sentinels.urls(), Topology::Sentinel) };
    let refused = allow(&store_unwatched(&anonymous), "r").await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let untrusted = RedisConfig {
        tls: Some(ClientFiles { ca_file: Some(Authority::create().ca_file()), identity: None }),
        ..anonymous.clone()
    };
    let refused = allow(&store_unwatched(&untrusted), "r").await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(sentinels.servers[0].keys().is_empty());

    let Issued { cert, key, .. } = authority.issue("client", &["weir"]);
    let known = files(Some(Identity { cert_file: cert, key_file: key }));
    let connect_timeout = Micros::from(DEADLINE);
    let store = watched(&shared(&RedisConfig { tls: known, connect_timeout, ..anonymous })).await;
    recovered("the first decision", async || allow(&store, "r").await == Ok(true)).await;
    sentinels.servers[0].kill();
    promoted(&store, &sentinels).await;
}

/// Without sentinels to tell: a server that turns read-only under us is dialled again with a backoff,
/// not for every call, and used again when it is a master again.
#[tokio::test]
async fn read_only_never_loops() {
    let redis = RedisServer::start();
    let store = super::ready(&redis).await;
    assert_eq!(allow(&store, "r").await, Ok(true));
    redis.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let connections = || {
        let stats: redis::InfoDict = redis.query(&["INFO", "stats"]);
        stats.get::<u64>("total_connections_received").unwrap()
    };
    let (before, started) = (connections(), Instant::now());
    let mut refused = 0;
    while refused < 200 || started.elapsed() < Duration::from_secs(2) {
        refused += u64::from(allow(&store, "r").await.is_err());
        assert!(started.elapsed() < SOON, "{refused} refused");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let dialled = connections() - before;
    let most = 40 + 2 * started.elapsed().as_secs();
    assert!(dialled < most, "{refused} refused, {dialled} connections");
    redis.cli(&["REPLICAOF", "NO", "ONE"]);
    recovered("decisions", async || allow(&store, "r").await == Ok(true)).await;
}
