//! Everything that makes Redis refuse charges while it answers `PING` and runs empty scripts. Each of these was
//! reported as "ready" before.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use weir_config::{Login, RedisConfig, Secret};
use weir_testing::rights;

use super::{of_node, on, ready, says, single};
use crate::failure::access::add_user;
use crate::support::RedisServer;
use crate::support::server::{Server, config};

const PASSWORD: &str = "hunter2";

/// The commands that make Redis refuse and allow again, and the words of the service meanwhile.
type Refusal = (&'static str, &'static str, &'static [&'static str]);

const OF_USERS: [Refusal; 3] = [
    ("ACL SETUSER weir -set", "ACL SETUSER weir +set", &["ACL SETUSER weir ", "+set"]),
    (
        "ACL SETUSER weir resetkeys ~other:*",
        "ACL SETUSER weir ~weir:*",
        &["NOPERM", " key", "ACL SETUSER weir ~weir:*"],
    ),
    (
        "ACL SETUSER weir -evalsha",
        "ACL SETUSER weir +evalsha",
        &["NOPERM", "ACL SETUSER weir ~weir:* +evalsha"],
    ),
];

const OF_SERVERS: [Refusal; 3] = [
    ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", &["OOM", "maxmemory", "raise it"]),
    (
        "CONFIG SET min-replicas-to-write 1",
        "CONFIG SET min-replicas-to-write 0",
        &["NOREPLICAS", "bring them back"],
    ),
    ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", &["READONLY", "name its master"]),
];

/// The service says which node it is, since when, why, and what to do; and that it is over when it is.
#[test]
fn each_refusal_is_reported_until_it_is_over() {
    std::thread::scope(|scope| {
        for refusal in OF_USERS {
            scope.spawn(move || is_reported(as_user, refusal));
        }
        for refusal in OF_SERVERS {
            scope.spawn(move || is_reported(single, refusal));
        }
    });
}

fn is_reported(login: fn(&RedisServer) -> RedisConfig, (refuse, allow, why): Refusal) {
    let redis = RedisServer::start();
    let run = |command: &str| redis.cli(&command.split(' ').collect::<Vec<_>>());
    let server = Server::start_by_the_system(on(login(&redis)));
    let (node, up) = (redis.addr(), |node: &str| of_node(&server, "weir_store_node_up", node));
    ready(&server);
    assert_eq!(up(&node).as_deref(), Some("1"));
    run(refuse);
    let parts = ["degraded: Redis node", node.as_str(), " cannot decide since 20", "what to do: "];
    let line = says(&server, &[&parts, why].concat());
    assert_eq!(server.get("/readyz").0, 200, "{line}");
    assert_eq!(up(&node).as_deref(), Some("0"));
    run(allow);
    ready(&server);
    assert_eq!(up(&node).as_deref(), Some("1"));
}

fn as_user(redis: &RedisServer) -> RedisConfig {
    add_user(redis, PASSWORD, &[rights::of_comparison(), vec!["+info"]].concat());
    let login = Some(Login { username: Some("weir".to_owned()), password: Secret::new(PASSWORD) });
    RedisConfig { login, ..single(redis) }
}

/// A server that is too old does not know `PXAT`. A proxy writes another word into the scripts.
#[test]
fn a_server_that_is_too_old() {
    let redis = RedisServer::start();
    let old = TooOld::before(redis.port());
    let config = RedisConfig { nodes: vec![format!("redis://127.0.0.1:{old}")], ..single(&redis) };
    let server = Server::start_by_the_system(on(config));
    says(&server, &["degraded: Redis node", "syntax error", "Redis 6.2 or later"]);
}

/// A proxy that puts other words into scripts.
struct TooOld;

impl TooOld {
    fn before(upstream: u16) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).unwrap();
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pump(from, to, true));
                std::thread::spawn(move || pump(server, client, false));
            }
        });
        port
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, rewrites: bool) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..count];
        let found = bytes.windows(6).position(|word| word == b"'PXAT'").filter(|_| rewrites);
        if let Some(at) = found {
            bytes[at..at + 6].copy_from_slice(b"'PXAX'");
        }
        if to.write_all(bytes).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// The rights of the documentation, and not one more.
#[test]
fn the_documented_user_passes() {
    let redis = RedisServer::start();
    let server = Server::start_by_the_system(on(as_user(&redis)));
    ready(&server);
    let denied: Vec<redis::Value> = redis.query(&["ACL", "LOG"]);
    assert!(denied.is_empty(), "{denied:?}");
}

/// With `ready_needs_store: true` a node is not ready while no Redis node can decide.
#[test]
fn a_node_that_needs_the_store_is_not_ready_without_it() {
    let redis = RedisServer::start();
    let needs = weir_config::Config { server: config().server, ..on(single(&redis)) };
    let server = Server::start_by_the_system(needs);
    ready(&server);
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    says(&server, &["not ready: Redis node", &redis.addr(), "OOM"]);
    assert_eq!(server.get("/readyz").0, 503);
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    ready(&server);
}
