//! Bounds on what a caller can make the server hold or do, with bytes that no client library would send. Others are
//! served meanwhile.

use std::error::Error as _;
use std::io::{ErrorKind, Read as _};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use weir_config::{Config, ServerConfig, ServerLimits};
use weir_units::Micros;

use crate::support::command::Serve;
use crate::support::frames::{self, CONTINUATION, HEADERS, ObservedEnd, Raw, frame, rst_stream};
use crate::support::server::{Server, ask, ask_under, config, config_on_fast};
use crate::support::{SOON, eventually, eventually_async};

/// RFC 9113's codes.
const ENHANCE_YOUR_CALM: u32 = 0xb;
const REFUSED_STREAM: u32 = 0x7;

fn limited(limits: ServerLimits) -> Server {
    let server = ServerConfig { limits, ..config().server };
    Server::start(Config { server, ..config() })
}

fn connections(server: &Server) -> u64 {
    server.metric("weir_connections")
}

/// Returns true if the other side has closed the connection. Reads everything before its end.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    loop {
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed_and_counted() {
    let server = limited(ServerLimits { max_connections: 100, ..ServerLimits::default() });
    let mut held: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(server.grpc).unwrap()).collect();
    eventually(SOON, "all are accepted", || connections(&server) == 100);
    let refused = TcpStream::connect(server.grpc).unwrap();
    eventually(SOON, "the 101st is closed", || is_closed(&refused));
    assert_eq!(server.metric("weir_connections_refused_total"), 1);
    assert!(held.iter().all(|stream| !is_closed(stream)));
    held.pop();
    eventually(SOON, "a place", || connections(&server) == 99);
    assert!(server.client().await.should_allow(ask("burst/x", "bob")).await.unwrap().into_inner().allowed);
}

/// Ten thousand that connect and say nothing: as many as may be are held, none for longer than the
/// handshake may take, and a client that was there before is served all the time.
#[tokio::test]
async fn ten_thousand_silent_connections() {
    let server = limited(ServerLimits {
        max_connections: 1000,
        handshake_timeout: Micros::from_secs(2),
        ..ServerLimits::default()
    });
    let mut client = server.client().await;
    let mut held = Vec::new();
    for index in 0..10_000 {
        held.push(TcpStream::connect(server.grpc).unwrap());
        if index % 500 == 0 {
            let answer = client.should_allow(ask_under("burst", &format!("r{index}"), "bob")).await;
            assert!(answer.unwrap().into_inner().allowed);
            assert!(connections(&server) <= 1000);
        }
    }
    eventually(SOON, "the silent ones are closed", || connections(&server) == 1);
    eventually(SOON, "every caller hears of it", || held.iter().all(is_closed));
    assert!(client.should_allow(ask_under("burst", "last", "bob")).await.unwrap().into_inner().allowed);
}

#[tokio::test]
async fn a_peer_that_vanished_is_found_out() {
    let limits = ServerLimits {
        keepalive_interval: Micros::from_millis(100),
        // The other peer must answer in time, which is of the same machine.
        keepalive_timeout: Micros::from_secs(5),
        ..ServerLimits::default()
    };
    let server = limited(limits);
    let silent = Raw::open(server.grpc);
    let mut alive = server.client().await;
    let closed = async || is_closed(silent.stream());
    eventually_async(SOON, "the one that answers no PING is closed", closed).await;
    assert!(alive.should_allow(ask("burst/x", "bob")).await.unwrap().into_inner().allowed);
    assert_eq!(connections(&server), 1);
}

/// Callers whose library repeats a call that it never sent, as gRPC's own libraries do, notice nothing.
/// tonic's does not: a call handed to its connection in the moment the GOAWAY arrives fails in the caller's
/// own process. Nothing else may fail, and what was sent is decided once.
#[tokio::test]
async fn old_connections_end_and_their_callers_do_not_notice() {
    const ALLOWED: &str = "weir_decisions_total{strategy=\"open\",outcome=\"allowed\"}";
    let age = Duration::from_secs(1);
    let limits = ServerLimits { max_connection_age: Some(Micros::from(age)), ..ServerLimits::default() };
    let server = limited(limits);
    let mut client = server.client().await;
    let started = Instant::now();
    let mut raw = Raw::open(server.grpc);
    let goaway = std::thread::spawn(move || raw.goaway().map(|code| (code, started.elapsed())));
    let (mut calls, mut unsent) = (0, 0_u64);
    while started.elapsed() < age * 3 {
        match client.should_allow(ask_under("open", &format!("{:?}", started.elapsed()), "c")).await {
            Ok(answer) => assert!(answer.into_inner().allowed),
            Err(status) if was_never_sent(&status) => unsent += 1,
            Err(status) => panic!("{status:?}"),
        }
        calls += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = u64::try_from(started.elapsed().as_millis() / (age * 8 / 10).as_millis()).unwrap();
    assert!(unsent <= ended, "at most one for each connection that ended: {unsent}");
    assert_eq!(server.metric(ALLOWED), calls - unsent, "each call that was sent is decided, once");
    let (code, after) = goaway.join().unwrap().expect("a GOAWAY");
    assert_eq!(code, 0, "no error");
    assert!(after >= age * 8 / 10, "{after:?}");
}

/// Returns true if the client's transport gave the call up before it wrote a byte of it.
fn was_never_sent(status: &Status) -> bool {
    let mut causes = iter::successors(status.source(), |&cause| cause.source());
    causes.any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled))
}

#[tokio::test]
async fn the_settings_announce_the_bounds_and_the_server_enforces_them() {
    let limits = ServerLimits { max_streams: 5, max_header_bytes: 4096, ..ServerLimits::default() };
    let server = limited(limits);
    let mut raw = Raw::open(server.grpc);
    let settings = raw.settings();
    assert_eq!((settings.get(&3), settings.get(&6)), (Some(&5), Some(&4096)), "{settings:?}");
    raw.send(&frames::settings_ack());
    // In one piece: a call that has been answered when the sixth comes has made room for it.
    let six: Vec<u8> = (0..6).flat_map(|stream| frames::headers(1 + 2 * stream, false)).collect();
    raw.send(&six);
    assert_eq!(raw.reset(11), Some(REFUSED_STREAM), "the sixth");
}

#[tokio::test]
async fn the_size_of_a_message_is_what_the_configuration_says() {
    let limits = ServerLimits { max_message_bytes: 32 << 10, ..ServerLimits::default() };
    let server = limited(limits);
    let mut client = server.client().await;
    let error = client.should_allow(ask(&"x".repeat(33 << 10), "bob")).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    let error = client.should_allow(ask(&"x".repeat(31 << 10), "bob")).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "it was read: {error}");
}

/// Streams opened and cancelled as fast as the socket takes them (CVE-2023-44487).
#[tokio::test]
async fn rapid_reset_ends_its_connection_only() {
    let limits = ServerLimits { max_pending_resets: 20, ..ServerLimits::default() };
    flood(&limited(limits), |stream| [frames::headers(stream, true), rst_stream(stream)].concat()).await;
}

/// Streams whose faults make us reset them (CVE-2025-8671).
#[tokio::test]
async fn made_resets_end_their_connection_only() {
    let limits = ServerLimits { max_local_resets: 20, ..ServerLimits::default() };
    flood(&limited(limits), |stream| {
        [frames::headers(stream, false), frames::overflowing_window_update(stream)].concat()
    })
    .await;
}

/// Sends 20,000 streams of `attack` on one connection, which must end; another client is served.
async fn flood(server: &Server, attack: impl Fn(u32) -> Vec<u8> + Send + 'static) {
    let mut client = server.client().await;
    let mut raw = Raw::open(server.grpc);
    let attacker = std::thread::spawn(move || {
        for batch in 0..200 {
            let bytes: Vec<u8> = (0..100).flat_map(|index| attack(1 + 2 * (batch * 100 + index))).collect();
            if !raw.try_send(&bytes) {
                break;
            }
        }
        raw.end()
    });
    let mut longest = Duration::ZERO;
    let mut calls = 0;
    while !attacker.is_finished() || calls < 20 {
        let asked = Instant::now();
        let answer = client.should_allow(ask_under("open", &format!("r{calls}"), "bob")).await;
        assert!(answer.unwrap().into_inner().allowed);
        longest = longest.max(asked.elapsed());
        calls += 1;
    }
    let end = attacker.join().unwrap();
    assert!(matches!(end, ObservedEnd::Closed(None | Some(ENHANCE_YOUR_CALM))), "{end:?}");
    eventually(SOON, "the attacker's connection is closed", || connections(server) == 1);
    assert!(longest < Duration::from_secs(10), "another client waited {longest:?}");
}

/// Operators saw that there was a flood, but not whose; and one chunk a worker stayed counted without any connection.
#[test]
fn the_line_of_a_flood_names_its_peer_once_a_minute() {
    let serve = Serve::start(&["--transport", "fast", "--workers", "1"]);
    let address: SocketAddr = serve.server.strip_prefix("http://").unwrap().parse().unwrap();
    let block = |stream| {
        let frames = frame(CONTINUATION, 0, stream, &[0; 16_384]).repeat(17);
        [frame(HEADERS, 0, stream, &[0; 16_384]), frames].concat()
    };
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::open(address);
        peers.push(raw.stream().local_addr().unwrap());
        raw.try_send(&block(1));
        assert!(matches!(raw.end(), ObservedEnd::Closed(_)));
    }
    let page = serve.get("/metrics");
    assert!(page.contains("\nweir_floods_total 3\n"), "{page}");
    eventually(SOON, "nothing is held", || serve.get("/metrics").contains("\nweir_buffered_bytes 0\n"));
    let log = serve.stop("TERM").1;
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("the client exceeds its bounds")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains(&peers[0].to_string()) && lines[0].contains("256 KiB"), "{lines:?}");
}

/// A connection of an open watch was once as old as its client liked.
#[tokio::test]
async fn a_watch_ends_with_its_aged_connection() {
    let limits = ServerLimits {
        max_connection_age: Some(Micros::from_secs(1)),
        max_connection_age_grace: Micros::from_millis(100),
        ..ServerLimits::default()
    };
    // Tonic's server has no such grace period.
    let server = ServerConfig { limits, ..config_on_fast().server };
    let server = Server::start(Config { server, ..config_on_fast() });
    let mut health = HealthClient::new(server.channel().await);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert!(watch.message().await.unwrap().is_some());
    assert!(tokio::time::timeout(SOON, watch.message()).await.expect("it ends").is_err());
    eventually(SOON, "it is counted", || server.metric("weir_connections_aged_total") >= 1);
}
