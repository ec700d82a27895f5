//! Variables that change how it serves, one by one.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use serde_json::Value;

use super::{FILE, Ratelimit, command, files, variables};
use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually, ports};

/// As in Go, any of these hosts is one socket of both families.
#[test]
fn every_address_is_one_of_both_families() {
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    for host in ["", "::", "0.0.0.0"] {
        let folder = files(FILE);
        let [http, debug, grpc] = [(); 3].map(|()| ports::free());
        let mut all = variables(folder.path(), Ipv4Addr::LOCALHOST);
        for (name, port) in [("", http), ("DEBUG_", debug), ("GRPC_", grpc)] {
            all.retain(|(other, _)| *other != format!("{name}HOST"));
            all.push((format!("{name}HOST"), host.to_owned()));
            all.push((format!("{name}PORT"), port.to_string()));
        }
        all.push(("LOG_LEVEL".to_owned(), "info".to_owned()));
        let process = Process::spawn(command(Path::new(WEIR), &["ratelimit"], &all)).unwrap();
        let mut started = Ratelimit { process, host: Ipv4Addr::LOCALHOST, _files: folder };
        eventually(SOON, "it is healthy", || {
            if let Some(status) = started.process.exited() {
                panic!("it ended: {status}\n{}", started.log());
            }
            started.get(http, "/healthcheck").is_some_and(|(status, _)| status == 200)
        });
        for port in [http, debug, grpc] {
            assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(), "{host:?} {port}");
            let six = TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
            assert_eq!(six.is_ok(), has_ipv6, "{host:?} {port}: {six:?}");
        }
        let (code, log) = started.stop();
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(log.contains("IPv6"), !has_ipv6, "{log}");
    }
}

#[test]
fn the_log_is_json_on_request() {
    let started = Ratelimit::start(&[("LOG_FORMAT", "json"), ("LOG_LEVEL", "Debug")]);
    let (_, log) = started.stop();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["level"] == "DEBUG"), "{log}");
}

#[tokio::test]
async fn connections_age_as_the_variable_says() {
    let started = Ratelimit::start(&[("GRPC_MAX_CONNECTION_AGE", "1s")]);
    let _idle = started.channel(8081).await;
    let aged = || started.metric(6070, "weir_connections_aged_total") >= Some(1.0);
    eventually(SOON, "the connection is told to go", aged);
}
