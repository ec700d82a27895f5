//! Nodes that decide by themselves while Redis cannot answer (`on_store_failure: local`): a whole service on a real
//! Redis that is frozen, killed and cut off.

mod costs;

use std::time::Instant;

use tonic::Code;
use tonic::transport::Channel;
use weir_config::{Config, ConfigOverrides};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    CountRequest, DebitRequest, Reason, RefundRequest, ReserveRequest, ResetRequest, ShouldAllowRequest,
    ShouldAllowResponse,
};

use crate::support::requests::About as _;
use crate::support::server::{Server, ask};
use crate::support::{Proxy, ProxyMode, RedisServer, SOON, eventually_async};

type Client = RateLimitServiceClient<Channel>;

/// A service whose clock stands still, so that all of it is in one window.
fn serve(url: &str, limit: u64, share: &str) -> Server {
    let text = format!(
        "server: {{ admin_service: true }}
store: {{ redis: {{ nodes: [\"{url}\"], deadline: 100ms, denials_max_age: 0s }} }}
strategies:
  api:
    on_store_failure: {{ local: {{ share: {share}, when_full: deny }} }}
    limits: [{{ name: each, per: [consumer], bucketed_window: {{ limit: {limit}, window: 1m, buckets: 60 }} }}]
  even:
    on_store_failure: {{ local: {{ share: {share} }} }}
    limits: [{{ name: each, per: [consumer], token_bucket: {{ rate: 1/s, burst: {limit} }} }}]
resources: [{{ match: \"*\", strategy: api }}]
"
    );
    Server::ready(Config::parse(&text, "weir.yaml", &ConfigOverrides::default()).unwrap())
}

async fn charge(client: &mut Client, cost: u64) -> ShouldAllowResponse {
    let request = ShouldAllowRequest { cost: Some(cost), ..ask("r", "c") };
    client.should_allow(request).await.unwrap().into_inner()
}

/// Waits until Redis decides again. Peeks charge nothing.
async fn recovered(client: &mut Client) {
    let peek = ShouldAllowRequest { peek: true, ..ask("r", "other") };
    eventually_async(SOON, "Redis decides again", async || {
        !client.should_allow(peek.clone()).await.unwrap().into_inner().degraded
    })
    .await;
}

#[tokio::test]
async fn an_outage_and_the_next_one_begin_where_redis_stood() {
    let redis = RedisServer::start();
    let server = serve(&redis.url(), 8, "1/2");
    let mut client = server.client().await;
    let first = charge(&mut client, 3).await;
    assert_eq!((first.allowed, first.degraded, first.local, first.remaining), (true, false, false, Some(5)));
    redis.freeze();
    // ⌈3 / 2⌉ of 4 are used.
    let local = charge(&mut client, 1).await;
    assert_eq!((local.allowed, local.degraded, local.local), (true, true, true), "{local:?}");
    assert_eq!((local.reason(), local.limit, local.remaining), (Reason::StoreFailure, Some(4), Some(1)));
    assert_eq!((local.limits[0].limit, local.limits[0].remaining), (4, 1));
    let denied = charge(&mut client, 2).await;
    assert_eq!((denied.allowed, denied.local, denied.remaining), (false, true, Some(1)));
    assert_eq!((denied.reason(), &denied.denied_by[..]), (Reason::StoreFailure, &["each".to_owned()][..]));
    assert!(denied.retry_after.is_some() && denied.denial_valid_for.is_none(), "{denied:?}");
    redis.thaw();
    recovered(&mut client).await;
    // Redis may have executed late what it was asked before it was frozen, and nothing else.
    let left = charge(&mut client, 0).await.remaining;
    assert!((Some(2)..=Some(5)).contains(&left), "local charges are not sent: {left:?}");
    redis.kill();
    let again = charge(&mut client, 2).await;
    assert_eq!((again.allowed, again.local, again.remaining), (false, true, Some(1)), "no refill");
    assert_eq!(charge(&mut client, 1).await.remaining, Some(0));
    assert!(server.metric("weir_local_decisions_total") >= 4);
    assert_eq!(server.metric("weir_local_refusals_total"), 0);
    let outcome =
        |name: &str| server.metric(&format!("weir_decisions_total{{strategy=\"api\",outcome=\"{name}\"}}"));
    assert!(outcome("degraded_allowed") >= 2 && outcome("degraded_denied") >= 2);
    assert!(
        server.metric("weir_store_errors_total{kind=\"timeout\"}") > 0,
        "failures are counted all the same"
    );
}

/// Headers for HTTP clients describe the smaller limits.
#[tokio::test]
async fn headers_are_those_of_the_smaller_limit() {
    let redis = RedisServer::start();
    let server = serve(&redis.url(), 8, "1/2");
    let mut client = server.client().await;
    redis.kill();
    let request = ShouldAllowRequest { headers: true, ..ask("r", "c") };
    let answer = client.should_allow(request).await.unwrap().into_inner();
    assert!(answer.local, "{answer:?}");
    assert_eq!((answer.headers["X-RateLimit-Limit"].as_str(), answer.binding.as_str()), ("4", "each"));
}

#[tokio::test]
async fn refunds_go_to_the_node_and_all_other_calls_are_unavailable() {
    let redis = RedisServer::start();
    let server = serve(&redis.url(), 8, "1/2");
    let mut client = server.client().await;
    redis.kill();
    assert_eq!(charge(&mut client, 4).await.remaining, Some(0));
    let refund =
        RefundRequest { resource: "r".into(), consumer: "c".into(), cost: Some(3), ..Default::default() };
    let refunded = client.refund(refund.clone()).await.unwrap().into_inner();
    assert_eq!((refunded.applied, refunded.limits[0].limit, refunded.limits[0].remaining), (true, 4, 3));
    let unavailable = |error: tonic::Status| assert_eq!(error.code(), Code::Unavailable, "{error}");
    let with_id = RefundRequest { id: "one".into(), ..refund };
    unavailable(client.refund(with_id).await.unwrap_err());
    let reset = ResetRequest { resource: "r".into(), consumer: "c".into(), ..Default::default() };
    let mut admin = AdminServiceClient::new(server.channel().await);
    unavailable(admin.reset(reset).await.unwrap_err());
    let debit =
        DebitRequest { resource: "r".into(), consumer: "c".into(), cost: Some(1), ..Default::default() };
    unavailable(client.debit(debit).await.unwrap_err());
    let reserve = ReserveRequest { id: "one".into(), ..ReserveRequest::about("even", "r", "c") };
    unavailable(client.reserve(reserve).await.unwrap_err());
    let interval = Some(prost_types::Duration { seconds: 10, nanos: 0 });
    let count = CountRequest { resource: "r".into(), consumer: "c".into(), interval, ..Default::default() };
    unavailable(client.count(count).await.unwrap_err());
    let once = ShouldAllowRequest { id: "one".into(), ..ask("r", "c") };
    unavailable(client.should_allow(once).await.unwrap_err());
}

/// Three nodes are cut off from Redis, each at other times and in other ways, and all of them again and again.
#[tokio::test]
async fn three_nodes_that_are_cut_off_keep_the_bound() {
    const LIMIT: u64 = 200;
    const PART: u64 = LIMIT / 4;
    let redis = RedisServer::start();
    let proxies = [(); 3].map(|()| Proxy::start(redis.port()));
    let servers = proxies.each_ref().map(|proxy| serve(&proxy.url(), LIMIT, "1/4"));
    let mut clients = Vec::new();
    for server in &servers {
        clients.push(server.client().await);
    }
    let (mut by_redis, mut by_nodes) = (0, 0);
    let modes = [ProxyMode::Pass, ProxyMode::BlackHole, ProxyMode::Drop];
    let started = Instant::now();
    for round in 0..9 {
        for (node, proxy) in proxies.iter().enumerate() {
            proxy.set_mode(modes[(round + node * (1 + round / 3)) % 3]);
        }
        for call in 0..90 {
            let answer = charge(&mut clients[call % 3], 1).await;
            if answer.allowed {
                *if answer.local { &mut by_nodes } else { &mut by_redis } += 1;
            }
        }
    }
    println!(
        "admitted {by_redis} by Redis and {by_nodes} by nodes; at most {LIMIT} and 3 * {PART}; {:?}",
        started.elapsed()
    );
    assert!(by_redis <= LIMIT && by_nodes <= 3 * PART, "{by_redis} {by_nodes}");
    assert!(by_redis > 0 && by_nodes > 0, "both decide");
}
