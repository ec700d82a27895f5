//! Headers for HTTP answers: the binding limit's, the same on every store, in calls, batches and streams.

use std::collections::BTreeMap;

use weir_config::{Config, ConfigOverrides, StoreConfig, Topology};
use weir_proto::v1::should_allow_result::Result as Ended;
use weir_proto::v1::streamed_result::Result as Streamed;
use weir_proto::v1::{
    Reason, ShouldAllowBatchRequest, ShouldAllowRequest, ShouldAllowResponse, ShouldAllowStreamRequest,
    StreamedRequest,
};
use weir_units::Micros;

use crate::support::redis_config;
use crate::support::server::{BASE, Server, ask_under, config};

const RULES: &str = r#"
strategies:
  bucket: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 2/5s, burst: 10 } }] }
  interval: { limits: [{ name: stock, per: [consumer], interval_refill: { capacity: 10, refill: 3, period: 1500ms } }] }
  month: { limits: [{ name: plan/1.a, per: [consumer], fixed_window: { limit: 5, calendar: month } }] }
  log: { limits: [{ name: log, per: [consumer], sliding_log: { limit: 3, window: 1m } }] }
  gap: { limits: [{ name: gap, per: [consumer], sliding_log: { limit: 3, window: 1m, min_gap: 2s } }] }
  sliding: { limits: [{ name: sliding, per: [consumer], sliding_window: { limit: 4, window: 1m } }] }
  slots: { limits: [{ name: slots, per: [consumer], bucketed_window: { limit: 4, window: 1m, buckets: 6, strict: false } }] }
  huge: { limits: [{ name: huge, per: [consumer], fixed_window: { limit: 4_000_000_000_000_000, window: 1s } }] }
  dual:
    access: { deny: [mallory], allow: [keeper] }
    on_store_failure: allow
    limits:
      - { name: everyone, per: [resource], sliding_log: { limit: 4, window: 1h } }
      - { name: each, per: [resource, consumer], sliding_log: { limit: 2, window: 1m } }
"#;

weir_testing::on_every_store!(holds_on);

fn rules() -> Config {
    let read = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap();
    Config { rules: read.rules, ..config() }
}

fn ask(strategy: &str, consumer: &str, cost: u64) -> ShouldAllowRequest {
    ShouldAllowRequest { cost: Some(cost), headers: true, ..ask_under(strategy, "api", consumer) }
}

/// The headers as text: remaining; next unit; quota and window; Retry-After; reset.
fn shown(answer: &ShouldAllowResponse) -> String {
    let header = |name: &str| answer.headers.get(name).map(String::as_str).unwrap_or("-");
    let names: Vec<&str> = answer.headers.keys().map(String::as_str).collect();
    let mut expected = vec!["RateLimit", "RateLimit-Policy"];
    expected.extend(answer.headers.contains_key("Retry-After").then_some("Retry-After"));
    expected.extend(["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]);
    assert_eq!(names, expected);
    format!(
        "{} | {} | {} | {} {} {}",
        header("RateLimit"),
        header("RateLimit-Policy"),
        header("Retry-After"),
        header("X-RateLimit-Limit"),
        header("X-RateLimit-Remaining"),
        header("X-RateLimit-Reset")
    )
}

async fn holds_on(store: StoreConfig) {
    let server = Server::ready(Config { store, ..rules() });
    let mut client = server.client().await;
    let day = 86_400;
    for (at, strategy, cost, expected) in [
        (0, "bucket", 4, r#""each";r=6;t=3 | "each";q=10;w=25 | - | 10 6 10"#),
        (0, "bucket", 7, r#""each";r=6;t=3 | "each";q=10;w=25 | 3 | 10 6 10"#),
        (0, "bucket", 11, r#""each";r=6;t=3 | "each";q=10;w=25 | - | 10 6 10"#),
        (10_000, "bucket", 0, r#""each";r=10 | "each";q=10;w=25 | - | 10 10 0"#),
        (10_000, "interval", 5, r#""stock";r=5;t=2 | "stock";q=10;w=6 | - | 10 5 3"#),
        (10_000, "interval", 9, r#""stock";r=5;t=2 | "stock";q=10;w=6 | 3 | 10 5 3"#),
        (
            10_000,
            "month",
            2,
            &format!(r#""plan/1.a";r=3;t={} | "plan/1.a";q=5;w={} | - | 5 3 {0}"#, 31 * day - 10, 31 * day),
        ),
        (10_000, "log", 1, r#""log";r=2;t=60 | "log";q=3;w=60 | - | 3 2 60"#),
        (20_000, "log", 1, r#""log";r=1;t=50 | "log";q=3;w=60 | - | 3 1 60"#),
        (20_500, "log", 2, r#""log";r=1;t=50 | "log";q=3;w=60 | 50 | 3 1 60"#),
        (20_500, "log", 3, r#""log";r=1;t=50 | "log";q=3;w=60 | 60 | 3 1 60"#),
        (20_500, "gap", 1, r#""gap";r=2;t=60 | "gap";q=3;w=60 | - | 3 2 60"#),
        (21_000, "gap", 1, r#""gap";r=2;t=2 | "gap";q=3;w=60 | 2 | 3 2 60"#),
        (60_000, "sliding", 2, r#""sliding";r=2;t=90 | "sliding";q=4;w=60 | - | 4 2 120"#),
        (60_000, "sliding", 4, r#""sliding";r=2;t=90 | "sliding";q=4;w=60 | 120 | 4 2 120"#),
        (61_000, "slots", 1, r#""slots";r=3;t=59 | "slots";q=4;w=60 | - | 4 3 59"#),
        (
            61_000,
            "huge",
            1,
            r#""huge";r=999999999999999;t=1 | "huge";q=999999999999999;w=1 | - | 4000000000000000 3999999999999999 1"#,
        ),
    ] {
        server.clock.set(Micros(BASE.0 + at * 1000));
        let answer = client.should_allow(ask(strategy, "bob", cost)).await.unwrap().into_inner();
        assert_eq!(shown(&answer), expected, "{strategy} {cost} at {at} ms");
        let plain = ShouldAllowRequest { headers: false, peek: true, ..ask(strategy, "bob", cost) };
        let answer = client.should_allow(plain).await.unwrap().into_inner();
        assert_eq!((answer.headers, answer.binding), (BTreeMap::new(), String::new()), "nobody asked");
    }
    one_limit_is_binding(&server).await;
    batches_and_streams_have_them(&server).await;
}

async fn one_limit_is_binding(server: &Server) {
    let mut client = server.client().await;
    for (at, consumer, cost, reason, binding, expected) in [
        (100, "bob", 1, Reason::Ok, "each", r#""each";r=1;t=60 | "each";q=2;w=60 | - | 2 1 60"#),
        (110, "bob", 1, Reason::Ok, "each", r#""each";r=0;t=50 | "each";q=2;w=60 | - | 2 0 60"#),
        (110, "bob", 1, Reason::Limited, "each", r#""each";r=0;t=50 | "each";q=2;w=60 | 50 | 2 0 60"#),
        // A quarter of the one remains, and half of the other.
        (
            120,
            "eve",
            1,
            Reason::Ok,
            "everyone",
            r#""everyone";r=1;t=3580 | "everyone";q=4;w=3600 | - | 4 1 3600"#,
        ),
        // Both deny, and the other one longer.
        (
            130,
            "eve",
            2,
            Reason::Limited,
            "everyone",
            r#""everyone";r=1;t=3570 | "everyone";q=4;w=3600 | 3570 | 4 1 3590"#,
        ),
        (130, "eve", 3, Reason::Never, "each", r#""each";r=1;t=50 | "each";q=2;w=60 | - | 2 1 50"#),
    ] {
        server.clock.set(Micros(BASE.0 + at * 1_000_000));
        let answer = client.should_allow(ask("dual", consumer, cost)).await.unwrap().into_inner();
        assert_eq!((answer.reason(), answer.binding.as_str()), (reason, binding), "{consumer} {cost}");
        assert_eq!(shown(&answer), expected, "{consumer} {cost} at {at} s");
    }
    for (listed, reason) in [("mallory", Reason::DenyList), ("keeper", Reason::AllowList)] {
        let answer = client.should_allow(ask("dual", listed, 1)).await.unwrap().into_inner();
        assert_eq!((answer.reason(), answer.headers.len(), answer.binding.as_str()), (reason, 0, ""));
    }
}

/// Each question of a batch has the headers that it would have alone, before the next one is decided.
async fn batches_and_streams_have_them(server: &Server) {
    let mut client = server.client().await;
    let now = BASE.0 + 1_000_000_000;
    server.clock.set(Micros(now));
    let expected = [
        r#""log";r=2;t=60 | "log";q=3;w=60 | - | 3 2 60"#,
        r#""log";r=1;t=60 | "log";q=3;w=60 | - | 3 1 60"#,
        r#""log";r=0;t=60 | "log";q=3;w=60 | - | 3 0 60"#,
        r#""log";r=0;t=60 | "log";q=3;w=60 | 60 | 3 0 60"#,
    ];
    let plain = ShouldAllowRequest { headers: false, ..ask("bucket", "batch", 1) };
    let mut requests = vec![ask("log", "batch", 1); 4];
    requests.insert(2, plain);
    let batch =
        client.should_allow_batch(ShouldAllowBatchRequest { requests: requests.clone() }).await.unwrap();
    let answers = batch.into_inner().results.into_iter().map(|result| match result.result {
        Some(Ended::Response(answer)) => answer,
        other => panic!("{other:?}"),
    });
    check(answers.collect(), &expected);

    requests.iter_mut().for_each(|request| request.consumer = "stream".to_owned());
    let requests =
        requests.into_iter().map(|request| StreamedRequest { id: 7, request: Some(request) }).collect();
    let message = ShouldAllowStreamRequest { requests };
    let mut stream = client.should_allow_stream(tokio_stream::iter([message])).await.unwrap().into_inner();
    let mut answers = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        answers.extend(message.results.into_iter().map(|result| match result.result {
            Some(Streamed::Response(answer)) => answer,
            other => panic!("{other:?}"),
        }));
    }
    check(answers, &expected);
}

fn check(answers: Vec<ShouldAllowResponse>, expected: &[&str; 4]) {
    assert_eq!((answers.len(), answers[2].headers.len()), (5, 0));
    let with: Vec<String> = answers
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != 2)
        .map(|(_, answer)| shown(answer))
        .collect();
    assert_eq!(with, expected);
}

/// A policy's answer says nothing of a limit.
#[tokio::test]
async fn a_policy_gives_no_headers() {
    let redis = redis_config(vec!["redis://127.0.0.1:1".to_owned()], Topology::Single);
    let server = Server::start(Config { store: StoreConfig::Redis(redis), ..rules() });
    let mut client = server.client().await;
    let answer = client.should_allow(ask("dual", "bob", 1)).await.unwrap().into_inner();
    assert_eq!((answer.reason(), answer.degraded), (Reason::StoreFailure, true));
    assert_eq!((answer.headers.len(), answer.binding.as_str()), (0, ""));
}
