//! A user and proxies that do for envoyproxy/ratelimit, which sends INCRBY and EXPIRE, but not for Weir, which needs
//! scripts: one clear error at the start.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::logged::lines;
use crate::support::command::Serve;
use crate::support::{RedisServer, SOON, eventually};

/// Starts on this store, and returns the one error once many probes have failed.
fn error(store: &str, variables: &[(&str, &str)]) -> serde_json::Value {
    let serve = Serve::start_with(&["--store", store], variables);
    let lasts = |page: String| {
        let line = page.lines().find(|line| line.contains("degraded: Redis node"))?.to_owned();
        line.split_once("(for ")?.1.split(' ').next()?.parse::<u64>().ok()
    };
    eventually(SOON, "several probes have failed", || lasts(serve.get("/readyz")) >= Some(3));
    let (_, log) = serve.stop("TERM");
    let message = "this Redis runs no scripts for Weir, so it counts nothing";
    let mut errors = lines(&log, "ERROR", "");
    assert_eq!(errors.len(), 1, "{log}");
    let error = errors.remove(0);
    assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    assert!(lines(&log, "WARN", "Redis node").is_empty(), "{log}");
    error
}

#[test]
fn a_user_who_may_only_incr_and_expire() {
    let redis = RedisServer::start();
    redis.cli(&["ACL", "SETUSER", "envoy", "on", ">hunter2", "~*", "+incrby", "+expire", "+ping"]);
    let store = format!("redis://envoy:hunter2@{}", redis.addr());
    let error = error(&store, &[]);
    assert!(error["reason"].as_str().unwrap().starts_with("NOPERM"), "{error}");
    let what_to_do = error["what_to_do"].as_str().unwrap();
    for part in [
        "INCRBY and EXPIRE are not enough",
        "ACL SETUSER envoy ~weir:* +evalsha +eval ",
        " +pexpireat",
        "~weir:*",
    ] {
        assert!(what_to_do.contains(part), "{part}: {error}");
    }
}

/// A proxy that answers commands that it knows, and has its own way to refuse a script.
fn proxy(refusal: Option<&'static str>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(client, refusal));
        }
    });
    format!("redis://127.0.0.1:{port}")
}

fn answer(mut client: TcpStream, refusal: Option<&str>) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let command = String::from_utf8_lossy(&buffer[..count]).into_owned();
        let reply = match refusal {
            None if command.contains("EVAL") => return,
            Some(refusal) if command.contains("EVAL") => refusal,
            _ => "+PONG\r\n",
        };
        if client.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn proxies_that_refuse_scripts() {
    for refusal in
        ["-ERR unknown command 'EVAL', with args beginning with: \r\n", "-ERR unsupported command 'EVAL'\r\n"]
    {
        let error = error(&proxy(Some(refusal)), &[]);
        assert!(error["reason"].as_str().unwrap().contains(" command 'EVAL'"), "{error}");
        assert!(error["what_to_do"].as_str().unwrap().contains("a proxy that forbids them"), "{error}");
    }
}

/// So does twemproxy.
#[test]
fn a_proxy_that_ends_the_connection() {
    let error = error(&proxy(None), &[]);
    assert!(error["reason"].as_str().unwrap().contains("ends the connection at a script"), "{error}");
    assert!(error["what_to_do"].as_str().unwrap().contains("a proxy that forbids them"), "{error}");
}
