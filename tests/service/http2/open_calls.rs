//! Open calls: how many a connection and a process may have, how long they may say nothing, and that they count in
//! the buffer budget. On both transports. `long_memory.rs` shows what they take.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use weir_config::{Config, ServerConfig, ServerLimits, TransportKind};
use weir_proto::v1::ShouldAllowStreamRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_units::Micros;

use super::requests::{BATCH, ONE, STREAM, data, head};
use super::session::Session;
use crate::support::server::{Server, ask_under, config};
use crate::support::{SOON, eventually, eventually_async};

const WATCH: &str = "/grpc.health.v1.Health/Watch";
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const ACQUIRE: &str = "/weir.v1.ConcurrencyService/Acquire";

/// A request for the list of services.
const LIST: &[u8] = &[0, 0, 0, 0, 2, 0x3a, 0];

fn on_both(limits: &ServerLimits) -> [Server; 2] {
    [TransportKind::Fast, TransportKind::Tonic].map(|transport| on(transport, limits))
}

fn on(transport: TransportKind, limits: &ServerLimits) -> Server {
    let server = ServerConfig { transport, limits: limits.clone(), ..config().server };
    Server::ready(Config { server, ..config() })
}

async fn decides(server: &Server) {
    let answer = server.client().await.should_allow(ask_under("open", "beside", "streams")).await;
    assert!(answer.expect("others are served").into_inner().allowed);
}

#[tokio::test]
async fn side_streams_beyond_the_bound_are_refused_and_counted() {
    let limits = ServerLimits { max_side_streams: 3, ..ServerLimits::default() };
    for server in on_both(&limits) {
        let mut health = HealthClient::new(server.channel().await);
        let mut watches = Vec::new();
        for _ in 0..3 {
            let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
            assert!(watch.message().await.unwrap().is_some());
            watches.push(watch);
        }
        for _ in 0..2 {
            let refused = health.watch(HealthCheckRequest::default()).await.unwrap_err();
            assert_eq!(refused.code(), Code::ResourceExhausted);
            assert!(refused.message().starts_with("max_side_streams: "), "{refused}");
        }
        assert_eq!(server.metric("weir_stream_refusals_total{bound=\"max_side_streams\"}"), 2);
        assert_eq!(server.metric("weir_open_streams"), 3);
        // Unary calls of the same service, decisions, and other connections are not concerned.
        assert!(health.check(HealthCheckRequest::default()).await.is_ok());
        decides(&server).await;
        let mut other = HealthClient::new(server.channel().await);
        watches.push(other.watch(HealthCheckRequest::default()).await.unwrap().into_inner());
        // One that ends leaves its place.
        watches.remove(0);
        eventually_async(SOON, "it has ended", async || server.metric("weir_open_streams") == 3).await;
        watches.push(health.watch(HealthCheckRequest::default()).await.unwrap().into_inner());
        drop((watches, health, other));
        eventually_async(SOON, "all have ended", async || server.metric("weir_open_streams") == 0).await;
    }
}

#[tokio::test]
async fn streams_beyond_the_bound_of_the_process_are_refused_and_counted() {
    let limits = ServerLimits { max_open_streams: 3, ..ServerLimits::default() };
    for server in on_both(&limits) {
        let silent = tokio_stream::pending::<ShouldAllowStreamRequest>;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut client = RateLimitServiceClient::new(server.channel().await);
            held.push(client.should_allow_stream(silent()).await.unwrap());
        }
        let mut health = HealthClient::new(server.channel().await);
        let watch = health.watch(HealthCheckRequest::default()).await.unwrap();
        let mut client = RateLimitServiceClient::new(server.channel().await);
        let refused = client.should_allow_stream(silent()).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().starts_with("max_open_streams: "), "{refused}");
        assert_eq!(server.metric("weir_stream_refusals_total{bound=\"max_open_streams\"}"), 1);
        decides(&server).await;
        drop(watch);
        eventually_async(SOON, "it has ended", async || server.metric("weir_open_streams") == 2).await;
        client.should_allow_stream(silent()).await.expect("there is a place again");
    }
}

/// A call whose first message never came once waited, with what it held, for as long as its connection.
#[test]
fn calls_without_a_message_end() {
    let limits = ServerLimits { first_message_timeout: Micros::from_millis(300), ..ServerLimits::default() };
    for transport in [TransportKind::Fast, TransportKind::Tonic] {
        let server = on(transport, &limits);
        let mut session = Session::open(server.grpc);
        let other = if cfg!(feature = "leases") { ACQUIRE } else { "/weir.v1.RateLimitService/Refund" };
        let paths = [ONE, BATCH, STREAM, WATCH, REFLECTION, other];
        for (id, path) in (1..).step_by(2).zip(paths) {
            session.send(&head(id, path));
        }
        for (id, path) in (1..).step_by(2).zip(paths) {
            let answer = session.ended(id);
            // The service of tonic-reflection drops what its request ends with.
            let is_dropped = path == REFLECTION && transport == TransportKind::Tonic;
            let expected = if is_dropped { "0" } else { "4" };
            assert_eq!(answer.code(), expected, "{path}: {answer:?}");
        }
        assert_eq!(server.metric("weir_message_timeouts_total"), paths.len() as u64);
        // A stream that has said something is not concerned, however long it is silent then.
        session.send(&[head(21, STREAM), data(21, &[0; 5])].concat());
        session.send(&head(23, STREAM));
        session.ended(23);
        assert!(!session.seen(21).ended);
    }
}

/// 64 connections of 1,024 open reflection streams once held 1.6 GB, of which no budget knew.
#[test]
fn open_calls_count_in_the_buffer_budget() {
    let limits = ServerLimits { max_buffered_bytes: 2 << 20, ..ServerLimits::default() };
    for server in on_both(&limits) {
        let mut sessions: Vec<Session> = (0..3).map(|_| Session::open(server.grpc)).collect();
        for session in &mut sessions {
            for id in (1..128).step_by(2) {
                session.send(&[head(id, REFLECTION), data(id, LIST)].concat());
            }
        }
        // 192 streams ask for 24 KiB each, of 2 MiB. What is read before each has its answer is of no single moment:
        // a stream may open between two readings, and one that is refused is open for a moment.
        let open = || server.metric("weir_open_streams");
        let refused = || server.metric("weir_buffer_refusals_total");
        eventually(SOON, "each is open or refused", || refused() > 0 && open() + refused() == 192);
        assert!(open() > 20, "{}", open());
        // Until the connection that holds most has given, the total may be an eighth above the budget.
        assert!(open() * (24 << 10) <= (2 << 20) / 8 * 9, "{}", open());
        assert!(server.metric("weir_buffered_bytes") >= open() * (24 << 10));
        drop(sessions);
        eventually(SOON, "all is given back", || {
            open() == 0 && server.metric("weir_buffered_bytes") <= 4 * (128 << 10)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(decides(&server));
    }
}
