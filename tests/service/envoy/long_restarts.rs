//! Rolling restarts behind a real Envoy that checks the health of its upstreams and repeats no call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use weir_testing::is_short;

use super::service::Service;
use super::shipped;
use crate::support::envoy::{EnvoyProcess, loopback};
use crate::support::{SOON, eventually_async};

/// Restarts of each node, and the fewest calls beside them.
const RESTARTS: usize = 6;
const CALLS: usize = 20_000;
const CALLERS: usize = 8;
/// Between two calls of a caller, so that the calls spread over all restarts.
const PAUSE: Duration = Duration::from_millis(30);
/// How long a node is gone: less than Envoy needs to find that out by itself.
const AWAY: Duration = Duration::from_secs(1);

/// Both nodes are restarted one after the other, again and again. Envoy notices after two checks, which takes 2 s,
/// that a node is not ready; until then the node serves, and so no call is lost.
#[tokio::test]
async fn rolling_restarts_lose_no_call() {
    let mut nodes = [Service::start(&shipped(), ""), Service::start(&shipped(), "")];
    let (front, admin) = (loopback(), loopback());
    let config = grpc_front(front, admin, [nodes[0].grpc, nodes[1].grpc]);
    let Some(envoy) = EnvoyProcess::run(&config, front, admin).await else { return };
    let healthy = async || {
        let both = async || envoy.stat("cluster.weir.membership_healthy").await == 2;
        eventually_async(SOON, "Envoy finds both nodes healthy", both).await;
    };
    healthy().await;

    let restarted = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicUsize::new(0));
    let channel = Endpoint::from_shared(format!("http://{front}")).unwrap().connect().await.unwrap();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(call(channel.clone(), Arc::clone(&restarted), Arc::clone(&calls))))
        .collect();
    let restarts = if is_short() { 2 } else { RESTARTS };
    for _ in 0..restarts {
        for node in &mut nodes {
            node.terminate_and_restart(AWAY).await;
            healthy().await;
        }
    }
    let enough = CALLS * restarts / RESTARTS;
    let called = async || calls.load(SeqCst) >= enough;
    eventually_async(Duration::from_secs(120), "there were enough calls", called).await;
    restarted.store(true, SeqCst);
    let mut lost = Vec::new();
    for caller in callers {
        lost.extend(caller.await.unwrap());
    }
    let calls = calls.load(SeqCst);
    println!("{} of {calls} calls were lost in {restarts} rolling restarts", lost.len());
    assert_eq!(lost, Vec::<String>::new(), "{} of {calls} calls were lost", lost.len());
}

/// Calls until the restarts are over; why some of them had no answer.
async fn call(channel: Channel, restarted: Arc<AtomicBool>, calls: Arc<AtomicUsize>) -> Vec<String> {
    let mut client = RateLimitServiceClient::new(channel);
    let mut lost = Vec::new();
    while !restarted.load(SeqCst) {
        calls.fetch_add(1, SeqCst);
        if let Err(status) = client.should_rate_limit(request()).await {
            lost.push(format!("{:?}: {}", status.code(), status.message()));
        }
        tokio::time::sleep(PAUSE).await;
    }
    lost
}

fn request() -> RateLimitRequest {
    let entry = Entry { key: "remote_address".to_owned(), value: "bob".to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    RateLimitRequest { domain: "edge".to_owned(), descriptors: vec![descriptor], hits_addend: 1 }
}

/// gRPC to two nodes. A check may take long, so that a busy machine does not make a healthy node unhealthy.
pub(super) fn grpc_front(front: SocketAddr, admin: SocketAddr, nodes: [SocketAddr; 2]) -> String {
    let address = |address: SocketAddr| {
        format!("{{ socket_address: {{ address: 127.0.0.1, port_value: {} }} }}", address.port())
    };
    let [one, two] = nodes.map(address);
    let (front, admin) = (address(front), address(admin));
    format!(
        r#"
admin: {{ address: {admin} }}
static_resources:
  listeners:
    - address: {front}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: front
                codec_type: HTTP2
                route_config:
                  virtual_hosts:
                    - {{ name: all, domains: ["*"], routes: [{{ match: {{ prefix: / }}, route: {{ cluster: weir }} }}] }}
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
    - name: weir
      connect_timeout: 1s
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {{ http2_protocol_options: {{}} }}
      health_checks:
        - interval: 1s
          no_traffic_interval: 1s
          timeout: 5s
          unhealthy_threshold: 2
          healthy_threshold: 1
          grpc_health_check: {{ service_name: weir.v1.RateLimitService }}
      load_assignment:
        cluster_name: weir
        endpoints:
          - lb_endpoints: [{{ endpoint: {{ address: {one} }} }}, {{ endpoint: {{ address: {two} }} }}]
"#
    )
}
