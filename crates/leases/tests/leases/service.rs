//! The contract of `ConcurrencyService`, through the real server, on every store.

mod mistakes;

use std::collections::HashMap;
use std::time::Duration;

use tonic::Code;
use tonic::transport::Channel;
use weir_config::{Config, StoreConfig};
use weir_core::key::KeySecret;
use weir_core::strategy::{
    Access, ConcurrencyNumbers, FailurePolicy, Field, LimitSource, Partitions, Resource, Resources, Rules,
    Scope, Strategy,
};
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::{AcquireRequest, AcquireResponse, Reason, ReleaseRequest, RenewRequest, WorkOutcome};
use weir_units::Micros;

use self::mistakes::refused;
use super::world::{adaptive, numbers};
use crate::support::rules::strategy;
use crate::support::server::{BASE, Server, config};
use crate::support::{RedisServer, redis_config, stores};

type Client = ConcurrencyServiceClient<Channel>;

fn leases(name: &str, numbers: ConcurrencyNumbers, policy: FailurePolicy) -> Strategy {
    let rule = weir_core::strategy::ConcurrencyRule::new(numbers).unwrap();
    Strategy::of_leases(name, Scope::new(&[Field::Resource, Field::Consumer]), rule, policy).unwrap()
}

fn rules() -> Rules {
    let aimd = weir_core::strategy::AimdRule { backoff: 0.5, timeout: Micros::from_secs(5) };
    let aimd = adaptive((10, 5, 12), weir_core::strategy::ControllerRule::Aimd(aimd));
    let shares = vec![("live".into(), 900), ("batch".into(), 100)];
    let each =
        [("each", &[Field::Resource][..], weir_core::algorithm::Algorithm::uniform(Micros(1)).unwrap())];
    let strategies = vec![
        leases("exports", numbers(2), FailurePolicy::Error),
        leases("wide", ConcurrencyNumbers { max_weight: Some(5), ..numbers(10) }, FailurePolicy::Error),
        leases(
            "adaptive",
            ConcurrencyNumbers { source: LimitSource::Adaptive(aimd), ..numbers(0) },
            FailurePolicy::Error,
        ),
        leases(
            "tiers",
            ConcurrencyNumbers { partitions: Some(Partitions::new("tier", shares)), ..numbers(10) },
            FailurePolicy::Error,
        ),
        leases("open", numbers(2), FailurePolicy::Allow),
        leases("closed", numbers(2), FailurePolicy::Deny),
        strategy("rates", &each, FailurePolicy::Error),
    ];
    let resources = [("exports/*".to_owned(), Resource { strategy: 0, group: None })];
    let access = |allow: &[&str], deny: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Access::new(owned(deny), owned(allow))
    };
    let none = || access(&[], &[]);
    let own = [access(&["monitoring"], &["mallory"]), none(), none(), none(), none(), none(), none()];
    Rules::new(strategies, Resources::new(resources)).with_access(none(), own)
}

/// The error must not name permits, of which a few thousand of a million are in use.
#[tokio::test]
async fn a_lease_that_is_refused_for_memory_says_so() {
    let rules =
        Rules::new(vec![leases("many", numbers(1_000_000), FailurePolicy::Error)], Resources::default());
    let memory = weir_config::MemoryConfig { budget: 1 << 20, ..Default::default() };
    let server = Server::ready(Config { store: StoreConfig::Memory(memory), rules, ..config() });
    let mut client = client(&server).await;
    for number in 0..10_000 {
        let answer = client.acquire(acquire("many", &number.to_string())).await.unwrap().into_inner();
        if !answer.allowed {
            assert_eq!(answer.reason(), Reason::Full);
            assert_eq!(answer.message, "The store has no memory for another lease. Try again later");
            return;
        }
    }
    panic!("the budget bounds nothing");
}

/// With keys of its own on a store that tests share.
fn server(store: StoreConfig) -> Server {
    Server::ready(Config { store, rules: rules(), key_secret: Some(KeySecret::random()), ..config() })
}

async fn client(server: &Server) -> Client {
    ConcurrencyServiceClient::new(server.channel().await)
}

fn acquire(strategy: &str, id: &str) -> AcquireRequest {
    AcquireRequest {
        resource: "r".to_owned(),
        consumer: "bob".to_owned(),
        strategy: strategy.to_owned(),
        id: id.to_owned(),
        ..AcquireRequest::default()
    }
}

fn renew(of: &AcquireRequest) -> RenewRequest {
    let AcquireRequest { resource, consumer, strategy, id, attributes, .. } = of.clone();
    RenewRequest { resource, consumer, strategy, id, attributes, ttl: None }
}

fn release(of: &AcquireRequest) -> ReleaseRequest {
    let AcquireRequest { resource, consumer, strategy, id, attributes, .. } = of.clone();
    ReleaseRequest { resource, consumer, strategy, id, attributes, outcome: 0, rtt: None }
}

async fn acquired(client: &mut Client, request: &AcquireRequest) -> AcquireResponse {
    client.acquire(request.clone()).await.unwrap().into_inner()
}

fn span(duration: Option<prost_types::Duration>) -> Option<Duration> {
    duration.map(|span| Duration::try_from(span).unwrap())
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

#[tokio::test]
async fn memory() {
    the_contract(&server(stores::memory())).await;
}

#[tokio::test]
async fn redis() {
    the_contract(&server(stores::redis())).await;
}

#[tokio::test]
async fn cluster() {
    the_contract(&server(stores::cluster())).await;
}

async fn the_contract(server: &Server) {
    let mut client = client(server).await;
    let [a, b, c] = ["a", "b", "c"].map(|id| acquire("exports", id));
    let first = acquired(&mut client, &a).await;
    let wanted = AcquireResponse {
        allowed: true,
        id: "a".to_owned(),
        expires_after: seconds(30),
        limit: Some(2),
        in_flight: Some(1),
        remaining: Some(1),
        reason: Reason::Ok.into(),
        ..AcquireResponse::default()
    };
    assert_eq!(first, wanted);
    server.clock.set(Micros(BASE.0 + 1_000_000));
    let again = acquired(&mut client, &a).await;
    assert_eq!(
        again,
        AcquireResponse { expires_after: seconds(29), ..wanted.clone() },
        "known, and not extended"
    );
    assert!(acquired(&mut client, &AcquireRequest { ttl: seconds(10), ..b.clone() }).await.allowed);
    let refused = acquired(&mut client, &c).await;
    let limited = AcquireResponse {
        limit: Some(2),
        in_flight: Some(2),
        remaining: Some(0),
        reason: Reason::Limited.into(),
        lease_expiry_bound: seconds(10),
        message: "All 2 permits are in use. Try again when one is free".to_owned(),
        ..AcquireResponse::default()
    };
    assert_eq!(refused, limited);
    let released = client.release(release(&a)).await.unwrap().into_inner();
    assert_eq!((released.held, released.in_flight, released.remaining), (true, 1, 1));
    let again = client.release(release(&a)).await.unwrap().into_inner();
    assert_eq!((again.held, again.in_flight), (false, 1));
    let renewed = client.renew(RenewRequest { ttl: seconds(60), ..renew(&b) }).await.unwrap().into_inner();
    assert_eq!((renewed.held, span(renewed.expires_after)), (true, Some(Duration::from_secs(60))));
    let lost = client.renew(renew(&a)).await.unwrap().into_inner();
    assert_eq!((lost.held, lost.expires_after, lost.limit), (false, None, 2));
    assert!(
        acquired(
            &mut client,
            &AcquireRequest { strategy: String::new(), resource: "exports/x".to_owned(), ..a }
        )
        .await
        .allowed
    );
    // The holder of b was paused until its lease had ended.
    server.clock.set(Micros(BASE.0 + 61_000_000));
    let late = client.release(release(&b)).await.unwrap().into_inner();
    assert_eq!((late.held, late.in_flight, late.remaining), (false, 0, 2));

    let wide = AcquireRequest { weight: Some(3), ..acquire("exports", "w") };
    let never = acquired(&mut client, &wide).await;
    assert_eq!((never.allowed, never.reason(), never.lease_expiry_bound), (false, Reason::Never, None));
    assert!(never.message.contains("can never be granted"), "{}", never.message);

    adapts(&mut client).await;
    partitions(&mut client).await;
    lists(&mut client).await;
}

/// A drop halves the limit, and success below it raises it.
async fn adapts(client: &mut Client) {
    let request = AcquireRequest { weight: Some(8), ..acquire("adaptive", "a") };
    assert_eq!(acquired(client, &request).await.limit, Some(10));
    let dropped = ReleaseRequest { outcome: WorkOutcome::Dropped.into(), ..release(&request) };
    assert_eq!(client.release(dropped).await.unwrap().into_inner().limit, 5);
    // More than now, and less than ever.
    let refused = acquired(client, &request).await;
    assert_eq!(
        (refused.reason(), refused.lease_expiry_bound, refused.remaining),
        (Reason::Limited, None, Some(5))
    );
    let above = acquired(client, &AcquireRequest { weight: Some(13), ..request.clone() }).await;
    assert_eq!(above.reason(), Reason::Never);
    assert!(
        above.message.starts_with("A weight of 13 is above the limit of 12 permits "),
        "{}",
        above.message
    );
    let small = AcquireRequest { weight: Some(3), ..request };
    assert!(acquired(client, &small).await.allowed);
    let done = ReleaseRequest { rtt: seconds(1), ..release(&small) };
    assert_eq!(client.release(done).await.unwrap().into_inner().limit, 6);
    assert!(acquired(client, &small).await.allowed);
    let late = ReleaseRequest { rtt: seconds(6), ..release(&small) };
    assert_eq!(client.release(late).await.unwrap().into_inner().limit, 5, "half of 6, and not below `min`");
}

/// A full limit denies callers without a share. Callers whose share is free still get a permit.
async fn partitions(client: &mut Client) {
    let of = |tier: &str, id: &str, weight| AcquireRequest {
        weight: Some(weight),
        attributes: HashMap::from([("tier".to_owned(), tier.to_owned())]),
        ..acquire("tiers", id)
    };
    assert!(acquired(client, &of("batch", "b", 10)).await.allowed, "alone, it may have all");
    assert!(!acquired(client, &of("batch", "b2", 1)).await.allowed);
    assert_eq!(acquired(client, &of("live", "l", 9)).await.in_flight, Some(19));
    assert!(!acquired(client, &of("live", "l2", 1)).await.allowed);
    // All values without a share have one permit together.
    assert!(acquired(client, &of("gold", "g", 1)).await.allowed);
    assert!(!acquired(client, &of("silver", "s", 1)).await.allowed);
    assert!(!acquired(client, &acquire("tiers", "none")).await.allowed, "nor those without the attribute");
    let batch = of("batch", "b", 10);
    assert_eq!(
        client.release(release(&batch)).await.unwrap().into_inner().remaining,
        1,
        "what batch may always have"
    );
}

async fn lists(client: &mut Client) {
    let of = |consumer: &str| AcquireRequest { consumer: consumer.to_owned(), ..acquire("exports", "l") };
    let denied = acquired(client, &of("mallory")).await;
    assert_eq!((denied.allowed, denied.reason(), denied.limit), (false, Reason::DenyList, None));
    let allowed = acquired(client, &of("monitoring")).await;
    assert_eq!((allowed.allowed, allowed.reason(), allowed.id.as_str()), (true, Reason::AllowList, ""));
    let released = client.release(release(&of("monitoring"))).await.unwrap().into_inner();
    assert_eq!((released.held, released.in_flight), (false, 0), "there is no lease");
}

/// Without a store the failure policy answers an acquisition. A renewal or release fails.
#[tokio::test]
async fn a_store_that_is_away() {
    let redis = RedisServer::start();
    let deadline = Micros::from_millis(200);
    let away = weir_config::RedisConfig {
        deadline,
        ..redis_config(vec![redis.url()], weir_config::Topology::Single)
    };
    let server = server(StoreConfig::Redis(away));
    let mut client = client(&server).await;
    assert!(acquired(&mut client, &acquire("open", "a")).await.allowed);
    redis.kill();
    let open = acquired(&mut client, &acquire("open", "b")).await;
    let wanted = AcquireResponse {
        allowed: true,
        degraded: true,
        reason: Reason::StoreFailure.into(),
        ..AcquireResponse::default()
    };
    assert_eq!(open, wanted, "no lease, so no id");
    let closed = acquired(&mut client, &acquire("closed", "b")).await;
    let message = "The rate limit cannot be checked at the moment. Try again later".to_owned();
    assert_eq!(closed, AcquireResponse { allowed: false, message, ..wanted });
    assert_eq!(refused(&mut client, acquire("exports", "b")).await.0, Code::Unavailable);
    for strategy in ["open", "closed", "exports"] {
        let held = acquire(strategy, "a");
        assert_eq!(client.renew(renew(&held)).await.unwrap_err().code(), Code::Unavailable);
        assert_eq!(client.release(release(&held)).await.unwrap_err().code(), Code::Unavailable);
    }
}

/// No label takes a value from a request.
#[tokio::test]
async fn what_is_counted() {
    let server = server(stores::memory());
    let mut client = client(&server).await;
    let [a, b, c] = ["a", "b", "c"].map(|id| acquire("exports", id));
    for request in [&a, &b, &c] {
        client.acquire(request.clone()).await.unwrap();
    }
    client.renew(renew(&c)).await.unwrap();
    client.release(release(&a)).await.unwrap();
    client.release(release(&a)).await.unwrap();
    let (_, metrics) = server.get("/metrics");
    for line in [
        "weir_decisions_total{strategy=\"exports\",outcome=\"allowed\"} 2",
        "weir_decisions_total{strategy=\"exports\",outcome=\"denied\"} 1",
        "weir_lease_calls_total{strategy=\"exports\",call=\"renew\",outcome=\"not_held\"} 1",
        "weir_lease_calls_total{strategy=\"exports\",call=\"release\",outcome=\"held\"} 1",
        "weir_lease_calls_total{strategy=\"exports\",call=\"release\",outcome=\"not_held\"} 1",
        "weir_decision_duration_seconds_count{method=\"Acquire\"} 3",
        "weir_decision_duration_seconds_count{method=\"Release\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(!metrics.contains("strategy=\"rates\",call="));
}
