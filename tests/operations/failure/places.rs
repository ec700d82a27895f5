//! Places of Redis besides a port and database 0: in another database, behind a Unix socket, and behind a certificate
//! for another name.

use redis::Value;
use weir_config::{RedisConfig, Sentinel, Topology};

use super::{allow, charge, config, recovered, shared, store_unwatched};
use crate::support::sentinels::Sentinels;
use crate::support::{RedisServer, SOON, eventually, scratch, watched};

/// The number of keys in a database.
fn keys(redis: &RedisServer, database: u32) -> i64 {
    let mut connection = redis.connection();
    redis::cmd("SELECT").arg(database).exec(&mut connection).unwrap();
    redis::cmd("DBSIZE").query(&mut connection).unwrap()
}

#[tokio::test]
async fn another_database() {
    let redis = RedisServer::start();
    let of = |database| RedisConfig { database, ..config(vec![redis.url()], Topology::Single) };
    let store = watched(&shared(&of(3))).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    assert!(keys(&redis, 3) > 0 && keys(&redis, 0) == 0);
    let other = watched(&shared(&of(4))).await;
    assert_eq!(charge(&other, "r", 1).await, Ok(99_999), "its limits are others");
    // A new connection selects it again.
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    recovered("the same database", async || charge(&store, "r", 0).await == Ok(99_999)).await;
    assert_eq!(keys(&redis, 0), 0);
}

#[tokio::test]
async fn a_database_that_is_not_there() {
    let redis = RedisServer::start();
    let config = RedisConfig { database: 16, ..config(vec![redis.url()], Topology::Single) };
    let error = allow(&store_unwatched(&config), "r").await.unwrap_err().to_string();
    assert!(error.contains("database 16 cannot be selected: ERR DB index is out of range"), "{error}");
    assert_eq!(keys(&redis, 0), 0);
}

/// The database is the master's: sentinels have none.
#[tokio::test]
async fn a_database_of_the_master() {
    let sentinels = Sentinels::start();
    let sentinel = Some(Sentinel { master_name: "zoo".to_owned(), login: None });
    let config = RedisConfig { sentinel, database: 2, ..config(sentinels.urls(), Topology::Sentinel) };
    let store = watched(&shared(&config)).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    assert!(keys(&sentinels.servers[0], 2) > 0 && keys(&sentinels.servers[0], 0) == 0);
}

#[tokio::test]
async fn a_unix_socket() {
    let folder = scratch::dir("socket-");
    let path = folder.path().join("redis.sock").display().to_string();
    let redis = RedisServer::builder().arg("--unixsocket").arg(&path).start();
    let config = config(vec![format!("unix:{path}")], Topology::Single);
    let store = watched(&shared(&config)).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    let clients: String = redis.query(&["CLIENT", "LIST"]);
    assert!(clients.contains(&format!("addr={path}:0")), "{clients}");
    redis.kill();
    eventually(SOON, "it is gone", || !redis.is_responsive());
    let error = allow(&store, "r").await.unwrap_err().to_string();
    assert!(!error.is_empty());
    redis.restart();
    recovered("decisions over the socket", async || charge(&store, "r", 0).await == Ok(100_000)).await;
    let _: Value = redis.cli(&["PING"]);
}
