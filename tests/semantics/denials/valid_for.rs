//! `denial_valid_for`: for how long a client may answer with a denial itself, on every store.

use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_core::key::KeySecret;
use weir_proto::v1::inline_limit::Algorithm;
use weir_proto::v1::{InlineLimit, InlineWindow, ShouldAllowRequest};
use weir_units::Micros;

use crate::support::server::{Server, ask, ask_under, config};

const RULES: &str = r#"
server: { inline_limits: true }
access: { deny: [mallory] }
strategies:
  plain: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 1, window: 1h } }] }
  short: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 5/1s, burst: 1 } }] }
  count: { limits: [{ name: l, per: [consumer], sliding_log: { limit: 1, window: 1h, count_denied: true } }] }
  tiers: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 1, window: 1h } }] }
  mixed: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 1, window: 1h } }] }
overrides:
  - { strategy: tiers, consumer: gold, limits: { l: { fixed_window: { limit: 9, window: 1h } } } }
  - { strategy: mixed, consumer: bob, resource: "a/*", limits: { l: { fixed_window: { limit: 9, window: 1s } } } }
"#;

weir_testing::on_every_store!(is_told_where_nobody_can_end_the_denial);

async fn is_told_where_nobody_can_end_the_denial(store: StoreConfig) {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let key_secret = Some(KeySecret::random());
    let server = Server::ready(Config { store, rules, key_secret, ..config() });
    let mut client = server.client().await;
    let mut valid_us = async |request: ShouldAllowRequest| {
        let answer = client.should_allow(request).await.unwrap().into_inner();
        assert!(!answer.allowed || answer.denial_valid_for.is_none());
        answer.denial_valid_for.map(|span| span.seconds * 1_000_000 + i64::from(span.nanos) / 1_000)
    };
    let of =
        |strategy: &str, cost| ShouldAllowRequest { cost: Some(cost), ..ask_under(strategy, "x", "bob") };
    for strategy in ["plain", "short", "count", "tiers", "mixed"] {
        assert_eq!(valid_us(of(strategy, 1)).await, None, "{strategy} has passed");
    }
    assert_eq!(valid_us(of("plain", 1)).await, Some(1_000_000), "at most a second");
    assert_eq!(valid_us(of("tiers", 1)).await, Some(1_000_000), "each consumer has its counter");
    let short = valid_us(of("short", 1)).await;
    assert!(short.is_none_or(|short| (1..=200_000).contains(&short)), "until it passes: {short:?}");
    assert_eq!(valid_us(of("count", 1)).await, None, "attempts of others prolong and end it");
    assert_eq!(valid_us(of("mixed", 1)).await, None, "calls to a/* charge the counter with other numbers");
    assert_eq!(valid_us(of("plain", 2)).await, None, "a state that is evicted is a full limit");
    assert_eq!(valid_us(ask_under("plain", "x", "mallory")).await, None, "it is on a list");
    let window = Some(prost_types::Duration { seconds: 3_600, nanos: 0 });
    for (separate, valid) in [(false, None), (true, Some(1_000_000))] {
        let algorithm = Some(Algorithm::FixedWindow(InlineWindow { limit: 0, window }));
        let inline = InlineLimit { name: "own".to_owned(), algorithm, separate, ..InlineLimit::default() };
        assert_eq!(valid_us(ShouldAllowRequest { inline: Some(inline), ..ask("x", "bob") }).await, valid);
    }
}

#[tokio::test]
async fn is_not_told_where_denials_are_not_cached() {
    let StoreConfig::Redis(redis) = weir_testing::stores::redis() else { panic!("it is Redis") };
    let store = StoreConfig::Redis(weir_config::RedisConfig { denials_max_age: Micros::ZERO, ..redis });
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { store, rules, key_secret: Some(KeySecret::random()), ..config() });
    let mut client = server.client().await;
    for allowed in [true, false] {
        let answer = client.should_allow(ask_under("plain", "x", "bob")).await.unwrap().into_inner();
        assert_eq!((answer.allowed, answer.denial_valid_for), (allowed, None));
    }
}
