//! The life of a server: health, reflection, workers, draining.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use weir_config::{Config, ServerConfig};
use weir_core::algorithm::VerdictSink as _;
use weir_proto::health::{HealthListRequest, HealthListResponse};
use weir_store::{Answers, Decision, Store};
use weir_units::Micros;

use crate::http2::ground::Gated;
use crate::support::server::{ALLOWED, Server, ask_under, config};
use crate::support::{SOON, eventually_async};

const ENVOY: &str = "envoy.service.ratelimit.v3.RateLimitService";
const DECISIONS: &str = "weir.v1.RateLimitService";

fn health_of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

macro_rules! services_by_reflection {
    ($server:expr, $version:ident) => {{
        use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
        use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
        let request = tonic_reflection::pb::$version::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut client = ServerReflectionClient::new($server.channel().await);
        match client.server_reflection_info(tokio_stream::once(request)).await {
            Err(status) => Err(status.code()),
            Ok(answers) => match answers.into_inner().next().await.unwrap().unwrap().message_response {
                Some(MessageResponse::ListServicesResponse(list)) => {
                    Ok(list.service.into_iter().map(|service| service.name).collect::<Vec<_>>())
                }
                other => panic!("{other:?}"),
            },
        }
    }};
}

#[tokio::test]
async fn health_tells_alive_from_ready() {
    let server = Server::with_store(config(), Gated::closed);
    let mut client = HealthClient::new(server.channel().await);
    let mut watch = client.watch(health_of(DECISIONS)).await.unwrap().into_inner();
    let mut next = async || watch.next().await.unwrap().unwrap().status();
    assert_eq!(next().await, ServingStatus::Serving);
    assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));

    server.readiness.set(Err("redis is away".to_owned()));
    assert_eq!(next().await, ServingStatus::NotServing);
    let mut check =
        async |service| client.check(health_of(service)).await.map(|answer| answer.get_ref().status());
    assert_eq!(check("").await.unwrap(), ServingStatus::Serving);
    assert_eq!(check(DECISIONS).await.unwrap(), ServingStatus::NotServing);
    assert_eq!(check("no.such.Service").await.unwrap_err().code(), Code::NotFound);
    assert_eq!(server.get("/readyz"), (503, "not ready: redis is away\n".to_owned()));
    assert_eq!(server.get("/livez"), (200, "ok\n".to_owned()));

    server.readiness.set(Ok(()));
    assert_eq!(next().await, ServingStatus::Serving);
    let mut unknown = client.watch(health_of("no.such.Service")).await.unwrap().into_inner();
    assert_eq!(unknown.next().await.unwrap().unwrap().status(), ServingStatus::ServiceUnknown);
}

/// A channel whose health checks ask for QueueService never became ready.
#[tokio::test]
async fn health_knows_every_service_that_is_on() {
    let on = ServerConfig { admin_service: true, ..config().server };
    let server = Server::start(Config { server: on, ..config() });
    let mut client = HealthClient::new(server.channel().await);
    let names = services_by_reflection!(server, v1).unwrap();
    for name in &names {
        let answer = client.check(health_of(name)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(answer.get_ref().status(), ServingStatus::Serving, "{name}");
        let mut watch = client.watch(health_of(name)).await.unwrap().into_inner();
        assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::Serving, "{name}");
    }
    let wanted = [
        (true, "AdminService"),
        (cfg!(feature = "leases"), "LeaseAdminService"),
        (cfg!(feature = "queues"), "QueueAdminService"),
        (cfg!(feature = "queues"), "QueueService"),
    ];
    for (is_there, service) in wanted {
        assert_eq!(names.contains(&format!("weir.v1.{service}")), is_there, "{service}: {names:?}");
    }
    // The newer proto has List.
    let mut grpc = tonic::client::Grpc::new(server.channel().await);
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/grpc.health.v1.Health/List");
    let codec = tonic_prost::ProstCodec::<HealthListRequest, HealthListResponse>::default();
    let listed = grpc.unary(tonic::Request::new(HealthListRequest {}), path, codec).await.unwrap();
    let statuses = listed.into_inner().statuses;
    assert!(statuses.values().all(|answer| answer.status() == ServingStatus::Serving), "{statuses:?}");
    assert!(["", "ratelimit"].into_iter().all(|name| statuses.contains_key(name)), "{statuses:?}");
    assert!(names.iter().all(|name| statuses.contains_key(name)), "{statuses:?}");
    assert!(statuses.contains_key("grpc.reflection.v1alpha.ServerReflection"), "{statuses:?}");
}

/// Tools that decode the details of errors look their messages up.
#[tokio::test]
async fn reflection_describes_the_details_of_errors() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let server = Server::start(config());
    let mut client = ServerReflectionClient::new(server.channel().await);
    for message in ["BadRequest", "ErrorInfo", "RetryInfo"] {
        let symbol = MessageRequest::FileContainingSymbol(format!("google.rpc.{message}"));
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(symbol) };
        let answers = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
        let answer = answers.into_inner().next().await.unwrap().unwrap().message_response;
        let Some(MessageResponse::FileDescriptorResponse(files)) = answer else { panic!("{answer:?}") };
        let name = b"google/rpc/error_details.proto";
        let is_there = |file: &Vec<u8>| file.windows(name.len()).any(|bytes| bytes == name);
        assert!(files.file_descriptor_proto.iter().any(is_there), "{message}");
    }
}

#[tokio::test]
async fn calls_in_flight_finish_and_watchers_see_not_serving() {
    let store = Gated::closed();
    let made = store.clone();
    let mut server = Server::with_store(config(), move || made.clone());
    let channel = server.channel().await;
    let mut watch = HealthClient::new(channel.clone()).watch(health_of("")).await.unwrap().into_inner();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let mut client = weir_proto::v1::rate_limit_service_client::RateLimitServiceClient::new(channel);
    let in_flight = tokio::spawn(async move { client.should_allow(ask_under("burst", "x", "bob")).await });
    eventually_async(SOON, "the call is in flight", async || store.waiting() == 1).await;

    server.stop();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(watch.next().await.is_none(), "a watch must not hold up the drain");
    let refused = async || tokio::net::TcpStream::connect(server.grpc).await.is_err();
    eventually_async(SOON, "new connections are refused", refused).await;
    assert_eq!(server.get("/readyz"), (503, "not ready: shutting down\n".to_owned()));

    store.open();
    assert!(in_flight.await.unwrap().unwrap().into_inner().allowed);
    assert_eq!(server.ended(), Ok(()));
}

fn delayed(drain_delay: Micros) -> Config {
    Config { server: ServerConfig { drain_delay, ..config().server }, ..config() }
}

/// The delay is longer than the test, so that nothing here depends on how fast it runs.
#[tokio::test]
async fn during_the_delay_it_says_not_ready_and_serves() {
    let mut server = Server::start(delayed(Micros::from_secs(600)));
    let mut old = server.client().await;
    let mut health = HealthClient::new(server.channel().await);
    let mut watch = health.watch(health_of("")).await.unwrap().into_inner();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::Serving);

    server.terminate();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(server.get("/readyz"), (503, "not ready: shutting down\n".to_owned()));
    assert_eq!(server.get("/livez").0, 200);
    let mut new = server.client().await;
    for (client, consumer) in [(&mut old, "bob"), (&mut new, "eve")] {
        let answer = client.should_allow(ask_under("burst", "x", consumer)).await;
        assert!(answer.unwrap().into_inner().allowed, "{consumer}");
    }
    for service in ["", DECISIONS].into_iter().chain(cfg!(feature = "envoy").then_some(ENVOY)) {
        let status = health.check(health_of(service)).await.unwrap().get_ref().status();
        assert_eq!(status, ServingStatus::NotServing, "{service}");
    }
    // A watch that ended now would be opened again and again until the delay is over.
    let end = tokio::time::timeout(std::time::Duration::from_millis(50), watch.next()).await;
    assert!(end.is_err(), "{end:?}");
}

#[tokio::test]
async fn after_the_delay_connections_end_and_new_ones_are_refused() {
    let mut server = Server::start(delayed(Micros::from_millis(200)));
    let mut health = HealthClient::new(server.channel().await);
    let mut watch = health.watch(health_of(DECISIONS)).await.unwrap().into_inner();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::Serving);
    server.terminate();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(watch.next().await.is_none(), "a watch must not hold up the drain");
    drop((watch, health));
    let grpc = server.grpc;
    let ended = tokio::task::spawn_blocking(move || server.ended()).await.unwrap();
    assert_eq!(ended, Ok(()));
    assert!(tokio::net::TcpStream::connect(grpc).await.is_err());
}

#[tokio::test]
async fn a_call_that_never_ends_is_cut_off_at_the_drain_timeout() {
    let store = Gated::closed();
    let made = store.clone();
    let server_config = ServerConfig { drain_timeout: Micros::from_millis(100), ..config().server };
    let mut server = Server::with_store(Config { server: server_config, ..config() }, move || made.clone());
    let mut client = server.client().await;
    let in_flight = tokio::spawn(async move { client.should_allow(ask_under("burst", "x", "bob")).await });
    eventually_async(SOON, "the call is in flight", async || store.waiting() == 1).await;
    server.stop();
    assert_eq!(server.ended(), Ok(()));
    assert!(in_flight.await.unwrap().is_err());
}

/// Counts the calls of one worker.
struct Counting(usize, Arc<[AtomicUsize; 2]>);

impl Store for Counting {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        self.1[self.0].fetch_add(decisions.len(), SeqCst);
        decisions.iter().for_each(|_| answers.all(ALLOWED));
    }
}

#[tokio::test]
async fn connections_are_dealt_out_evenly() {
    let calls = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let (counted, made) = (Arc::clone(&calls), AtomicUsize::new(0));
    let server =
        Server::with_store(config(), move || Counting(made.fetch_add(1, SeqCst), Arc::clone(&counted)));
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = server.client().await;
        client.should_allow(ask_under("burst", "x", "bob")).await.unwrap();
        clients.push(client);
    }
    assert_eq!([calls[0].load(SeqCst), calls[1].load(SeqCst)], [3, 3]);
    assert!(server.get("/metrics").1.contains("weir_connections 6\n"));
    drop(clients);
    let none = async || server.get("/metrics").1.contains("weir_connections 0\n");
    eventually_async(SOON, "closed connections are counted off", none).await;
}

#[tokio::test]
async fn a_worker_that_dies_ends_the_server_with_an_error() {
    let mut server = Server::with_store(config(), || -> Gated { panic!("a bug that this test planted") });
    let error = server.ended().unwrap_err();
    assert!(error.contains("ended unexpectedly"), "{error}");
}

/// The services that reflection lists: its own, and those of the features that this program has.
fn listed(reflection: &'static str) -> Vec<&'static str> {
    let services = [
        (true, reflection),
        (true, DECISIONS),
        (true, "grpc.health.v1.Health"),
        (cfg!(feature = "envoy"), ENVOY),
        (cfg!(feature = "leases"), "weir.v1.ConcurrencyService"),
        (cfg!(feature = "queues"), "weir.v1.QueueService"),
        (cfg!(feature = "usage"), "weir.v1.UsageService"),
    ];
    services.into_iter().filter_map(|(is_there, service)| is_there.then_some(service)).collect()
}

#[tokio::test]
async fn reflection_speaks_both_versions() {
    let server = Server::start(config());
    let v1 = services_by_reflection!(server, v1).unwrap();
    assert_eq!(v1, listed("grpc.reflection.v1.ServerReflection"));
    let v1alpha = services_by_reflection!(server, v1alpha).unwrap();
    assert_eq!(v1alpha, listed("grpc.reflection.v1alpha.ServerReflection"));
}

#[tokio::test]
async fn reflection_can_be_switched_off() {
    let server_config = ServerConfig { reflection: false, ..config().server };
    let server = Server::start(Config { server: server_config, ..config() });
    assert_eq!(services_by_reflection!(server, v1), Err(Code::Unimplemented));
    assert_eq!(services_by_reflection!(server, v1alpha), Err(Code::Unimplemented));
}
