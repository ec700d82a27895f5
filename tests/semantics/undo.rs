//! The contracts of `Refund` and `Reset`, through the real server, on every store.

#[cfg(all(feature = "leases", feature = "queues"))]
mod features;

use tonic::transport::Channel;
use tonic::{Code, Status};
use weir_config::{Config, ServerConfig, StoreConfig, Topology};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{FailurePolicy, Field, Resources, Rules};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{LimitState, RefundRequest, ResetRequest, ShouldAllowRequest};
use weir_units::Micros;

use crate::support::rules::strategy;
use crate::support::server::{BASE, Server, ask_under, config};
use crate::support::{RedisServer, SOON, eventually, redis_config, stores};

const RETRIES: usize = 100;
const DAY: Micros = Micros::from_secs(24 * 3600);

type Client = RateLimitServiceClient<Channel>;

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let server = ready(store, true);
    let mut client = server.client().await;
    for strategy in ["bucket", "window", "interval"] {
        a_refund_never_gets_above_the_limit(&mut client, strategy).await;
    }
    an_id_is_refunded_once_however_often_it_is_tried(&server).await;
    an_id_is_its_consumers_and_strategys_own(&mut client).await;
    a_refund_is_for_the_named_limits(&mut client).await;
    a_reset_frees_exactly_the_named_limits(&server).await;
    a_window_that_was_reset_begins_with_the_next_call(&server).await;
}

async fn a_refund_never_gets_above_the_limit(client: &mut Client, strategy: &str) {
    let ask = ask_under(strategy, "never above", "bob");
    charge(client, &ask, 7).await;
    assert_eq!(refunded(client, refund(&ask, 3, "")).await, (true, vec![("each".into(), 6)]), "{strategy}");
    assert_eq!(refunded(client, refund(&ask, 1, "")).await, (true, vec![("each".into(), 7)]), "{strategy}");
    for cost in [100, u64::MAX] {
        let observed = refunded(client, refund(&ask, cost, "")).await;
        assert_eq!(observed, (true, vec![("each".into(), 10)]), "{strategy}");
    }
    assert_eq!(charge(client, &ask, 10).await, 0, "{strategy}");
    assert!(!client.should_allow(ask).await.unwrap().into_inner().allowed, "{strategy}");
}

async fn an_id_is_refunded_once_however_often_it_is_tried(server: &Server) {
    let ask = ask_under("dual", "tried often", "bob");
    charge(&mut server.client().await, &ask, 9).await;
    let mut tries = Vec::new();
    for _ in 0..RETRIES / 10 {
        let client = server.client().await;
        for _ in 0..10 {
            let (mut client, request) = (client.clone(), refund(&ask, 2, "call 1"));
            tries.push(tokio::spawn(async move { refunded(&mut client, request).await }));
        }
    }
    let mut applied = 0;
    for one in tries {
        let (this, limits) = one.await.unwrap();
        assert_eq!(limits, [("everyone".to_owned(), 93), ("each".to_owned(), 3)]);
        applied += usize::from(this);
    }
    assert_eq!(applied, 1);
}

async fn an_id_is_its_consumers_and_strategys_own(client: &mut Client) {
    let asks = [("dual", "bob"), ("dual", "eve"), ("other", "bob")];
    for (strategy, consumer) in asks {
        let ask = ask_under(strategy, "own ids", consumer);
        charge(client, &ask, 5).await;
        for (id, applied) in [("{a}:1", true), ("{a}:1", false), ("{a}:2", true), ("", true), ("", true)] {
            assert_eq!(refunded(client, refund(&ask, 1, id)).await.0, applied, "{strategy} {consumer} {id}");
        }
        let left = client.should_allow(peek(&ask)).await.unwrap().into_inner().limits[1].remaining;
        assert_eq!(left, 9, "{strategy} {consumer}");
    }
}

async fn a_refund_is_for_the_named_limits(client: &mut Client) {
    let ask = ask_under("dual", "refund some", "bob");
    charge(client, &ask, 5).await;
    let some = RefundRequest { limits: vec!["each".into()], ..refund(&ask, 2, "only each") };
    assert_eq!(refunded(client, some.clone()).await, (true, vec![("each".into(), 7)]));
    assert_eq!(refunded(client, some).await, (false, vec![("each".into(), 7)]));
    assert_eq!(remaining(client, &ask).await, [95, 7]);
    let both = RefundRequest { limits: vec!["each".into(), "everyone".into()], ..refund(&ask, 1, "") };
    let expected = vec![("everyone".into(), 96), ("each".into(), 8)];
    assert_eq!(refunded(client, both).await, (true, expected));
}

async fn a_reset_frees_exactly_the_named_limits(server: &Server) {
    let (mut client, mut admin) = (server.client().await, admin(server).await);
    let (bob, eve) = (ask_under("dual", "reset some", "bob"), ask_under("dual", "reset some", "eve"));
    charge(&mut client, &bob, 5).await;
    charge(&mut client, &eve, 4).await;
    let observed = admin.reset(reset(&bob, &[])).await.unwrap().into_inner().limits;
    assert_eq!(left(observed), [("each".to_owned(), 10)]);
    assert_eq!(remaining(&mut client, &bob).await, [91, 10]);
    assert_eq!(remaining(&mut client, &eve).await, [91, 6]);
    let observed = admin.reset(reset(&eve, &["everyone"])).await.unwrap().into_inner().limits;
    assert_eq!(left(observed), [("everyone".to_owned(), 100)]);
    assert_eq!(remaining(&mut client, &eve).await, [100, 6]);
    charge(&mut client, &eve, 1).await;
    let observed = admin.reset(reset(&eve, &["each", "everyone", "each"])).await.unwrap().into_inner().limits;
    assert_eq!(left(observed), [("everyone".to_owned(), 100), ("each".to_owned(), 10)]);
}

async fn a_window_that_was_reset_begins_with_the_next_call(server: &Server) {
    let (mut client, mut admin) = (server.client().await, admin(server).await);
    for strategy in ["bucket", "window", "interval", "log", "denied"] {
        let ask = ask_under(strategy, "reset", "bob");
        charge(&mut client, &ask, 10).await;
        let observed = admin.reset(reset(&ask, &[])).await.unwrap().into_inner().limits;
        assert_eq!(observed[0].reset_after, Some(prost_types::Duration::default()), "{strategy}");
        assert_eq!(charge(&mut client, &ask, 10).await, 0, "{strategy}");
    }
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_an_error_that_says_why() {
    let server = ready(stores::memory(), true);
    let (mut client, mut admin) = (server.client().await, admin(&server).await);
    let ask = ask_under("dual", "r", "bob");
    let named = |names: &[&str]| RefundRequest {
        limits: names.iter().map(|&name| name.to_owned()).collect(),
        ..refund(&ask, 1, "")
    };
    let denied = "limit `each` of strategy `denied` counts denied attempts (`count_denied`), so nothing can \
                  be given back to it; name the limits that are meant";
    let unknown = "limits is \"nobody\", \"a\\nb\": strategy `dual` has only everyone, each";
    let long = format!("id is \"{}…\": it has 129 bytes; at most 128 fit", "i".repeat(64));
    let free = "cost is 0: it must be at least 1: nothing cannot be given back";
    let cases = [
        (refund(&ask_under("denied", "r", "bob"), 1, ""), Code::FailedPrecondition, denied),
        (named(&["each", "nobody", "a\nb"]), Code::InvalidArgument, unknown),
        (refund(&ask, 1, &"i".repeat(129)), Code::InvalidArgument, &long),
        (refund(&ask, 0, ""), Code::InvalidArgument, free),
    ];
    for (request, code, message) in cases {
        is_refused(client.refund(request).await.unwrap_err(), code, message);
    }
    let nowhere = client.refund(refund(&ask_under("", "r", "bob"), 1, "")).await.unwrap_err();
    assert_eq!(nowhere.code(), Code::NotFound);

    let unknown = "limits is \"nobody\": strategy `dual` has only everyone, each";
    let status = admin.reset(reset(&ask, &["nobody"])).await.unwrap_err();
    is_refused(status, Code::InvalidArgument, unknown);
    let by_nobody = "limits is empty: no limit of strategy `shared` counts by consumer, so those that are \
                     meant must be named: all";
    let status = admin.reset(reset(&ask_under("shared", "r", ""), &[])).await.unwrap_err();
    is_refused(status, Code::InvalidArgument, by_nobody);
    admin.reset(reset(&ask_under("shared", "r", ""), &["all"])).await.unwrap();
}

#[tokio::test]
async fn the_admin_service_is_off_until_it_is_wanted() {
    let server = ready(stores::memory(), false);
    let status = admin(&server).await.reset(reset(&ask_under("dual", "r", "bob"), &[])).await.unwrap_err();
    let wanted = "there is no method `/weir.v1.AdminService/Reset`; AdminService is there with `server.admin_service: true`";
    is_refused(status, Code::Unimplemented, wanted);
}

#[tokio::test]
async fn no_policy_answers_for_the_store() {
    let redis = RedisServer::start();
    let server = ready(StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single)), true);
    redis.kill();
    eventually(SOON, "not ready", || server.get("/readyz").0 == 503);
    let ask = ask_under("dual", "r", "bob");
    let status = server.client().await.refund(refund(&ask, 1, "")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    let status = admin(&server).await.reset(reset(&ask, &[])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

#[tokio::test]
async fn an_id_is_forgotten_after_a_day() {
    let server = ready(stores::memory(), false);
    let mut client = server.client().await;
    let ask = ask_under("dual", "r", "bob");
    for (at, applied) in [(0, true), (DAY.0 - 1, false), (DAY.0, true), (2 * DAY.0 - 1, false)] {
        server.clock.set(Micros(BASE.0 + at));
        assert_eq!(refunded(&mut client, refund(&ask, 1, "id")).await.0, applied, "after {at} µs");
    }
}

#[tokio::test]
async fn an_id_is_a_key_that_expires() {
    let redis = RedisServer::start();
    let server = ready(StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single)), false);
    let mut client = server.client().await;
    refunded(&mut client, refund(&ask_under("dual", "r r", "bob"), 1, "{x}")).await;
    let keys = redis.state_keys();
    let [key] = &keys[..] else { panic!("one key: {keys:?}") };
    assert!(key.starts_with("weir:{"), "{key}");
    assert!(key.ends_with("}Fdual|%7bx%7d|r%20r|bob"), "{key}");
    let lives = redis.pttl(key);
    assert!((86_300_000..=86_400_000).contains(&lives), "{lives} ms");
}

fn is_refused(status: Status, code: Code, message: &str) {
    assert_eq!((status.code(), status.message()), (code, message));
}

/// Charges, and tells what remains.
async fn charge(client: &mut Client, ask: &ShouldAllowRequest, cost: u64) -> u64 {
    let request = ShouldAllowRequest { cost: Some(cost), ..ask.clone() };
    let answer = client.should_allow(request).await.unwrap().into_inner();
    assert!(answer.allowed, "{answer:?}");
    answer.remaining.unwrap()
}

fn peek(ask: &ShouldAllowRequest) -> ShouldAllowRequest {
    ShouldAllowRequest { peek: true, ..ask.clone() }
}

/// Returns the `remaining` of each limit.
async fn remaining(client: &mut Client, ask: &ShouldAllowRequest) -> Vec<u64> {
    let limits = client.should_allow(peek(ask)).await.unwrap().into_inner().limits;
    limits.iter().map(|limit| limit.remaining).collect()
}

fn refund(ask: &ShouldAllowRequest, cost: u64, id: &str) -> RefundRequest {
    let ShouldAllowRequest { resource, consumer, strategy, .. } = ask.clone();
    let (cost, id) = (Some(cost), id.to_owned());
    RefundRequest { resource, consumer, strategy, cost, id, ..RefundRequest::default() }
}

/// Returns whether the refund was applied, and the `remaining` of each limit.
async fn refunded(client: &mut Client, request: RefundRequest) -> (bool, Vec<(String, u64)>) {
    let answer = client.refund(request).await.unwrap().into_inner();
    (answer.applied, left(answer.limits))
}

fn left(limits: Vec<LimitState>) -> Vec<(String, u64)> {
    limits.into_iter().map(|limit| (limit.name, limit.remaining)).collect()
}

fn reset(ask: &ShouldAllowRequest, limits: &[&str]) -> ResetRequest {
    let ShouldAllowRequest { resource, consumer, strategy, attributes, .. } = ask.clone();
    let limits = limits.iter().map(|&name| name.to_owned()).collect();
    ResetRequest { resource, consumer, strategy, limits, attributes }
}

async fn admin(server: &Server) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(server.channel().await)
}

fn ready(store: StoreConfig, admin_service: bool) -> Server {
    let config = config();
    let server_config = ServerConfig { admin_service, ..config.server.clone() };
    Server::ready(Config { store, server: server_config, rules: rules(), ..config })
}

/// Ten of each engine, and strategies of two limits. Their policy would let every call pass.
fn rules() -> Rules {
    let hour = Micros::from_secs(3600);
    let bucket = Algorithm::bucket(10, Rate { count: 1, period: hour }).unwrap();
    let window = |limit, count_denied| Algorithm::fixed_window(limit, hour, false, count_denied).unwrap();
    let interval = Algorithm::interval_refill(10, 1, hour, false).unwrap();
    let log = Algorithm::sliding_log(10, hour).unwrap();
    let resource: &[Field] = &[Field::Resource];
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let dual: [(&str, &[Field], Algorithm); 2] =
        [("everyone", resource, window(100, false)), ("each", both, bucket)];
    let strategies = [
        ("bucket", &[("each", both, bucket)][..]),
        ("window", &[("each", both, window(10, false))]),
        ("interval", &[("each", both, interval)]),
        ("log", &[("each", both, log)]),
        ("denied", &[("each", both, window(10, true))]),
        ("dual", &dual),
        ("other", &dual),
        ("shared", &[("all", resource, bucket)]),
    ];
    let strategies = strategies.map(|(name, limits)| strategy(name, limits, FailurePolicy::Allow));
    Rules::new(strategies.into(), Resources::default())
}
