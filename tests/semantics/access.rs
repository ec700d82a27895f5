//! Lists and overrides through the whole service: what callers read, what the store is asked, what is
//! counted; and the choice itself against a naive one.

mod naive;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_testing::DecideOne as _;

use weir_config::{Config, ConfigOverrides, MemoryConfig, Topology};
use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_proto::v1::{Reason, ShouldAllowRequest, ShouldAllowResponse};
use weir_store::memory::MemoryStore;
use weir_store::{Decision, Verdicts};
use weir_time::clock::{Clock, ManualClock};

use crate::support;
use crate::support::Counting;
use crate::support::server::{BASE, Server, ask};

const CONFIG: &str = r#"
strategies:
  feeding:
    limits:
      - { name: everyone, per: [resource], fixed_window: { limit: 100, window: 10s } }
      - { name: each, per: [resource, consumer], fixed_window: { limit: 2, window: 10s } }
    access: { deny: [own-denied], allow: [own-allowed] }
  shop: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 2, window: 10s } }] }
resources:
  - { match: zoo/*, strategy: feeding }
  - { match: shop/*, strategy: shop }
overrides:
  - { consumer: "gold-*", strategy: feeding, limits: { each: { fixed_window: { limit: 5, window: 10s } } } }
  - { consumer: nobody, strategy: feeding, limits: { each: { fixed_window: { limit: 0, window: 10s } } } }
  - { consumer: bucket, strategy: feeding, limits: { each: { token_bucket: { rate: 4/10s } } } }
access: { allow: [keeper, both], deny: [mallory, both, "bot-*"] }
"#;

fn serve(config: &str, store: &Counting) -> Server {
    let config = Config::parse(config, "test", &ConfigOverrides::default()).unwrap();
    let store = store.clone();
    Server::with_store(config, move || store.clone())
}

fn counting() -> Counting {
    let clock = Clock::Manual(ManualClock::at(BASE));
    Counting(MemoryStore::new(&MemoryConfig::default(), clock), Arc::default())
}

async fn one(server: &Server, request: ShouldAllowRequest) -> ShouldAllowResponse {
    server.client().await.should_allow(request).await.unwrap().into_inner()
}

#[tokio::test]
async fn listed_consumers_are_answered_without_the_store() {
    let store = counting();
    let server = serve(CONFIG, &store);
    let answer = |allowed, reason: Reason, message: &str| ShouldAllowResponse {
        allowed,
        reason: reason.into(),
        message: message.to_owned(),
        ..ShouldAllowResponse::default()
    };
    let denied = answer(false, Reason::DenyList, "Access denied. This consumer is on the deny list");
    let allowed = answer(true, Reason::AllowList, "");
    for (resource, consumer, expected) in [
        ("zoo/lion", "mallory", &denied),
        ("zoo/lion", "both", &denied),
        ("shop/1", "bot-7", &denied),
        ("zoo/lion", "own-denied", &denied),
        ("zoo/lion", "keeper", &allowed),
        ("zoo/lion", "own-allowed", &allowed),
    ] {
        for (cost, peek) in [(1, false), (0, false), (u64::MAX, false), (1, true)] {
            let request = ShouldAllowRequest { cost: Some(cost), peek, ..ask(resource, consumer) };
            assert_eq!(one(&server, request).await, *expected, "{consumer}, cost {cost}");
        }
    }
    assert_eq!(store.1.load(Relaxed), 0, "no list asks the store");

    let bob = one(&server, ask("zoo/lion", "bob")).await;
    assert_eq!((bob.limits[0].remaining, store.1.load(Relaxed)), (99, 1), "nobody before was charged");
    assert_eq!(
        one(&server, ask("shop/1", "own-denied")).await.reason(),
        Reason::Ok,
        "another strategy's list"
    );

    let page = server.get("/metrics").1;
    for (strategy, outcome, count) in
        [("feeding", "deny_list", 12), ("shop", "deny_list", 4), ("feeding", "allow_list", 8)]
    {
        let line = format!("weir_decisions_total{{strategy=\"{strategy}\",outcome=\"{outcome}\"}} {count}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
}

/// A list must not hide what is wrong with a request.
#[tokio::test]
async fn a_list_answers_sound_requests_only() {
    let server = serve(&CONFIG.replace("both,", "both, '*',"), &counting());
    let mut client = server.client().await;
    for request in [ask("zoo/lion", ""), ask("", "mallory"), ask("nowhere", "mallory")] {
        client.should_allow(request).await.unwrap_err();
    }
    assert_eq!(one(&server, ask("shop/1", "anybody")).await.reason(), Reason::DenyList);
}

#[tokio::test]
async fn overrides_have_numbers_of_their_own() {
    let server = serve(CONFIG, &counting());
    let mut limits = Vec::new();
    for (resource, consumer) in
        [("zoo/lion", "bob"), ("zoo/lion", "gold-bob"), ("zoo/lion", "bucket"), ("shop/1", "gold-bob")]
    {
        let answer = one(&server, ask(resource, consumer)).await;
        limits.push((answer.limit, answer.remaining));
    }
    let of = |limit, remaining| (Some(limit), Some(remaining));
    assert_eq!(limits, [of(2, 1), of(5, 4), of(4, 3), of(2, 1)]);

    let nobody = one(&server, ask("zoo/lion", "nobody")).await;
    assert_eq!((nobody.allowed, nobody.reason(), nobody.limit), (false, Reason::Never, Some(0)));
    assert_eq!((nobody.retry_after, nobody.denied_by), (None, vec!["each".to_owned()]));
    assert_eq!(nobody.limits[0].remaining, 97, "the shared limit counts those that passed");
    let look = one(&server, ShouldAllowRequest { cost: Some(0), ..ask("zoo/lion", "nobody") }).await;
    assert!(look.allowed, "nothing is not above nothing");
    let page = server.get("/metrics").1;
    assert!(page.contains("weir_decisions_total{strategy=\"feeding\",outcome=\"never\"} 1\n"), "{page}");
}

/// The state is the base's where the engine is the same, and another one where it is not.
#[tokio::test]
async fn raising_a_limit_keeps_what_is_spent() {
    let store = counting();
    let before = serve(CONFIG, &store);
    for remaining in [1, 0] {
        assert_eq!(one(&before, ask("zoo/lion", "bob")).await.remaining, Some(remaining));
    }
    let raised = serve(&CONFIG.replace("gold-*", "bob"), &store);
    assert_eq!(one(&raised, ask("zoo/lion", "bob")).await.remaining, Some(2), "5 less 3");
    let rebuilt = serve(&CONFIG.replace("consumer: bucket", "consumer: bob"), &store);
    assert_eq!(
        one(&rebuilt, ask("zoo/lion", "bob")).await.remaining,
        Some(3),
        "a bucket has a key of its own"
    );
}

/// A consumer with an override shares the counters of the other limits with all consumers. So calls that are sent
/// together are decided in the order of their arrival, whichever numbers each has.
#[tokio::test]
async fn overrides_keep_the_order_on_shared_counters() {
    let config =
        Config::parse(&CONFIG.replace("feeding", "ordered"), "test", &ConfigOverrides::default()).unwrap();
    let clock = Clock::Manual(ManualClock::at(BASE));
    let store = support::redis_store(vec![support::shared_redis().url()], Topology::Single, clock).await;
    for round in 0..20 {
        let resource = format!("zoo/{round}");
        let remaining = |consumer: &'static str| {
            let (rules, resource, store) = (&config.rules, resource.as_str(), &store);
            async move {
                let strategy = rules.resolve_for(resource, consumer, "").unwrap().strategy;
                let subject = Subject { resource, consumer, ..Subject::default() };
                let mut out = Verdicts::default();
                let decision = Decision::new(strategy, subject, Op::Peek, &[]);
                store.decide_one(&decision, Op::Charge, &[1], &mut out).await.unwrap();
                out.limits[0].remaining
            }
        };
        let all = tokio::join!(
            remaining("a"),
            remaining("gold-1"),
            remaining("b"),
            remaining("bucket"),
            remaining("gold-2"),
            remaining("c"),
            remaining("gold-3"),
            remaining("d"),
        );
        assert_eq!(all, (99, 98, 97, 96, 95, 94, 93, 92));
    }
}
