//! The limit of open files, of real processes.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use tonic::transport::Endpoint;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;

use crate::support::command::{Serve, WEIR};
use crate::support::frames::{PREFACE, settings};
use crate::support::server::ask;
use crate::support::{RedisServer, SOON, eventually, eventually_async, scratch};

const NO_PLACE: &str = "as many open files as clients may use";
const NO_FIT: &str = "max_connections does not fit";

/// The example with such `server.limits`.
fn with_limits(limits: &str) -> String {
    let server = format!("\nserver:\n  limits: {{ {limits} }}\n");
    weir_config::EXAMPLE.replacen("\nserver:\n", &server, 1)
}

/// Connects so many clients, and waits until each of them has been greeted or refused.
fn connect_all(serve: &Serve, count: usize) -> Vec<TcpStream> {
    let address = serve.server.strip_prefix("http://").unwrap();
    let mut clients: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(address).unwrap()).collect();
    for client in &mut clients {
        client.set_read_timeout(Some(SOON)).unwrap();
        // Either may fail once the connection has been refused.
        let _ = client.write_all(&[PREFACE, &settings(&[])].concat());
        let read = client.read(&mut [0]);
        assert!(!matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock), "{read:?}");
    }
    clients
}

#[test]
fn the_limit_is_raised_and_what_does_not_fit_is_said() {
    let dir = scratch::dir("files");
    let file = dir.path().join("weir.yaml");
    for (max_connections, fits) in [(100, true), (250, false)] {
        std::fs::write(&file, with_limits(&format!("max_connections: {max_connections}"))).unwrap();
        let serve = Serve::start_with_files(100, 300, &["--config", file.to_str().unwrap()]);
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", serve.pid())).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let limits: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
        assert_eq!(limits, ["300", "300"], "{line}");
        let (code, log) = serve.stop("TERM");
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(!log.contains(NO_FIT), fits, "{log}");
        // 16 and the 64 of the admin port are reserved of 300, and some are open already.
        let said = log.lines().find(|line| line.contains(NO_FIT)).map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            (line["limit"].as_u64(), line["reserve"].as_u64(), line["fitting"].as_u64().unwrap())
        });
        assert!(
            said.is_none_or(|(limit, reserve, fitting)| {
                (limit, reserve) == (Some(300), Some(80)) && (150..220).contains(&fitting)
            }),
            "{said:?}"
        );
    }
}

/// With all files that clients may use in use, Redis is reached again and the admin port answers.
#[tokio::test]
async fn clients_cannot_use_up_the_files_that_others_need() {
    const LIMIT: usize = 200;
    let redis = RedisServer::start();
    let dir = scratch::dir("files");
    let file = scratch::file(dir.path(), "weir.yaml", with_limits("handshake_timeout: 1h"));
    let args = ["--config", file.to_str().unwrap(), "--workers", "2", "--store", &redis.url()];
    let serve = Serve::start_with_files(100, LIMIT as u32, &args);
    eventually(SOON, "it is ready", || serve.get("/readyz").ends_with("\r\n\r\nready\n"));
    let channel = Endpoint::from_shared(serve.server.clone()).unwrap().connect().await.unwrap();
    let mut client = RateLimitServiceClient::new(channel);
    let mut decided = async || {
        let peek = ShouldAllowRequest { peek: true, ..ask("zewtopia.com/tigerfeeding", "bob") };
        client.should_allow(peek).await.is_ok_and(|answer| !answer.get_ref().degraded)
    };
    assert!(decided().await);

    let _held = connect_all(&serve, LIMIT + 50);
    let metric = |name: &str| serve.metric(name) as usize;
    let seen = || metric("weir_connections") + metric("weir_connections_refused_total");
    eventually(SOON, "all have been accepted or refused", || seen() == LIMIT + 51);
    // 16, 64 for the admin port, and, for each of two workers and the watcher, two connections to Redis; and two timers
    // for each worker.
    let reserve = 16 + 64 + 2 * (2 + 1) + 2 * 2;
    assert!(metric("process_open_fds") <= LIMIT - reserve + 10, "{}", metric("process_open_fds"));
    assert!(metric("weir_connections") > (LIMIT - reserve) / 2, "{}", metric("weir_connections"));

    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    eventually_async(SOON, "Redis is reached again", &mut decided).await;
    let _scrapers: Vec<TcpStream> = (0..32).map(|_| TcpStream::connect(serve.admin()).unwrap()).collect();
    assert!(serve.get("/livez").contains(" 200 "));
    let log = serve.stop("TERM").1;
    assert_eq!(log.matches(NO_PLACE).count(), 1, "{log}");
    assert!(!log.contains("cannot accept"), "{log}");
}

/// While clients have all files that they may use, the node is not ready. Each row of refusals is one line of the log.
#[test]
fn a_node_whose_clients_have_all_files_is_not_ready() {
    const LIMIT: u32 = 200;
    let serve = Serve::start_with_files(100, LIMIT, &[]);
    let sockets = || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", serve.pid())).unwrap().flatten();
        let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        // Each runtime has a handle of its own to one socket for signals.
        names.filter(|name| name.to_string_lossy().starts_with("socket:")).collect::<BTreeSet<_>>()
    };
    let at_rest = sockets();
    for _ in 0..2 {
        let clients = connect_all(&serve, LIMIT as usize);
        let page = serve.get("/readyz");
        assert!(page.contains(" 503 ") && page.contains("clients have all open files"), "{page}");
        drop(clients);
        // A file that is closed during a row would end it: the next client gets that file.
        eventually(SOON, "all connections have ended", || sockets() == at_rest);
    }
    let (_, log) = serve.stop("TERM");
    assert_eq!(log.matches(NO_PLACE).count(), 2, "{log}");
}

/// With too few files for any client, the service used to start, and to say that it is ready. Later it was refused, but had said
/// before that it serves.
#[test]
fn a_limit_that_leaves_no_connection_is_refused_at_the_start() {
    for limit in [40, 64] {
        let command =
            format!("ulimit -n {limit} && exec {WEIR} serve --listen 127.0.0.1:0 --admin 127.0.0.1:0");
        let ended = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        let wanted = format!("the limit of open files is {limit}, and Weir needs at least ");
        assert!(said.contains(&wanted), "{said}");
        let announced = String::from_utf8_lossy(&ended.stdout);
        assert!(announced.is_empty() && !said.contains(r#""serving""#), "{announced}{said}");
    }
}
