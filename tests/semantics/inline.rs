//! Limits that requests bring along: the same answers as of a configured limit with the same numbers, on every store.

use prost_types::Duration;
use tonic::Code;
use weir_config::{Config, ConfigOverrides, RedisConfig, StoreConfig, Topology};
use weir_core::key::KeySecret;
use weir_proto::v1::inline_limit::Algorithm;
use weir_proto::v1::should_allow_result::Result as Ended;
use weir_proto::v1::{
    CancelReservationRequest, CountRequest, DebitRequest, InlineBucketedWindow, InlineLimit,
    InlineTokenBucket, InlineWindow, Reason, RefundRequest, ReserveRequest, ShouldAllowBatchRequest,
    ShouldAllowRequest, ShouldAllowResponse, StoreFailurePolicy,
};
use weir_units::Micros;

use crate::support::redis_config;
use crate::support::server::{BASE, Server, ask, ask_under, config};

const RULES: &str = r#"
server: { inline_limits: true }
access: { deny: [mallory], allow: [keeper] }
strategies:
  bucket: { limits: [{ name: l, per: [resource, consumer], token_bucket: { rate: 3/1s, burst: 5 } }] }
  window: { limits: [{ name: l, per: [resource, consumer], fixed_window: { limit: 5, window: 2s } }] }
  sliding: { limits: [{ name: l, per: [resource, consumer], sliding_window: { limit: 5, window: 2s } }] }
  log: { limits: [{ name: l, per: [resource, consumer], sliding_log: { limit: 5, window: 2s } }] }
"#;

fn rules() -> Config {
    let read = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap();
    Config { rules: read.rules, ..config() }
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

fn bucket(burst: u64) -> Algorithm {
    Algorithm::TokenBucket(InlineTokenBucket { rate: 3, period: seconds(1), burst: Some(burst) })
}

fn window(limit: u64) -> InlineWindow {
    InlineWindow { limit, window: seconds(2) }
}

fn bring(name: &str, algorithm: Algorithm, resource: &str, consumer: &str) -> ShouldAllowRequest {
    let inline = InlineLimit { name: name.to_owned(), algorithm: Some(algorithm), ..InlineLimit::default() };
    ShouldAllowRequest { inline: Some(inline), ..ask(resource, consumer) }
}

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let server = Server::ready(Config { store, key_secret: Some(KeySecret::random()), ..rules() });
    the_answers_are_those_of_configured_limits(&server).await;
    other_numbers_go_on_with_the_same_state(&server).await;
    lists_ids_and_batches_work(&server).await;
    more_than_are_kept_are_built_again(&server).await;
    what_was_charged_to_it_can_be_given_back_and_counted(&server).await;
    separate_numbers_are_limits_of_their_own(&server).await;
}

async fn the_answers_are_those_of_configured_limits(server: &Server) {
    let mut client = server.client().await;
    let costs = [1, 2, 0, 3, 1, 6, 2, 1, 1, 4, 5, 1];
    for (strategy, algorithm) in [
        ("bucket", bucket(5)),
        ("window", Algorithm::FixedWindow(window(5))),
        ("sliding", Algorithm::SlidingWindow(window(5))),
        ("log", Algorithm::SlidingLog(window(5))),
    ] {
        for (step, cost) in (0..).zip(costs.into_iter().cycle().take(60)) {
            server.clock.set(Micros(BASE.0 + step * 371_003));
            let flags = |request| ShouldAllowRequest {
                cost: Some(cost),
                peek: step % 7 == 3,
                at_most: step % 7 == 5,
                headers: step % 2 == 0,
                ..request
            };
            let configured = flags(ask_under(strategy, "api", "bob"));
            let brought = flags(bring("l", algorithm, "api", "bob"));
            let mut configured = client.should_allow(configured).await.unwrap().into_inner();
            // Calls with other numbers may end the denial of a limit that a request brings along.
            configured.denial_valid_for = None;
            let brought = client.should_allow(brought).await.unwrap().into_inner();
            assert_eq!(brought, configured, "{strategy}, step {step}");
        }
    }
}

/// Otherwise a caller who varies the numbers would get a fresh limit with each call.
async fn other_numbers_go_on_with_the_same_state(server: &Server) {
    let mut client = server.client().await;
    let mut remaining = async |name: &str, algorithm| {
        let request = bring(name, algorithm, "numbers", "bob");
        let answer: ShouldAllowResponse = client.should_allow(request).await.unwrap().into_inner();
        (answer.allowed, answer.remaining.unwrap())
    };
    for burst in [9, 8, 7, 6] {
        assert_eq!(remaining("api", bucket(burst)).await, (true, 8 - (9 - burst) * 2), "burst {burst}");
    }
    assert_eq!(remaining("api", bucket(4)).await, (false, 0));
    assert_eq!(remaining("other", bucket(4)).await, (true, 3), "another name is another limit");
    let log = Algorithm::SlidingLog(window(4));
    assert_eq!(remaining("api", log).await, (true, 3), "another algorithm is another limit");
}

async fn what_was_charged_to_it_can_be_given_back_and_counted(server: &Server) {
    let mut client = server.client().await;
    server.clock.set(BASE);
    let (resource, consumer) = ("undo".to_owned(), "bob".to_owned());
    let inline = |algorithm| bring("own", algorithm, "undo", "bob").inline;
    let slots = InlineBucketedWindow { limit: 5, window: seconds(60), buckets: 6 };
    let bucket_of_5 = InlineTokenBucket { rate: 1, period: seconds(30), burst: Some(5) };
    let (slots, bucket_of_5) =
        (inline(Algorithm::BucketedWindow(slots)), inline(Algorithm::TokenBucket(bucket_of_5)));
    for limit in [&slots, &bucket_of_5] {
        let call = ShouldAllowRequest { inline: limit.clone(), cost: Some(4), ..ask("undo", "bob") };
        assert!(client.should_allow(call.clone()).await.unwrap().into_inner().allowed);
        assert!(!client.should_allow(call).await.unwrap().into_inner().allowed);
        let (resource, consumer, inline) = (resource.clone(), consumer.clone(), limit.clone());
        let refund = RefundRequest { resource, consumer, inline, cost: Some(3), ..Default::default() };
        let refunded = client.refund(refund).await.unwrap().into_inner();
        assert_eq!((refunded.applied, refunded.limits[0].remaining), (true, 4), "{limit:?}");
    }
    let (resource_of, consumer_of) = (resource.clone(), consumer.clone());
    let interval = seconds(60);
    let count = CountRequest {
        resource: resource_of,
        consumer: consumer_of,
        inline: slots,
        interval,
        ..Default::default()
    };
    assert_eq!(client.count(count).await.unwrap().into_inner().used, 1);
    let debit = DebitRequest {
        resource: resource.clone(),
        consumer: consumer.clone(),
        inline: bucket_of_5.clone(),
        cost: Some(4),
        ..Default::default()
    };
    assert_eq!(client.debit(debit).await.unwrap().into_inner().limits[0].remaining, 0);
    let (id, max_wait) = ("r1".to_owned(), seconds(60));
    let reserve = ReserveRequest {
        resource: resource.clone(),
        consumer: consumer.clone(),
        inline: bucket_of_5.clone(),
        id: id.clone(),
        max_wait,
        ..Default::default()
    };
    let reserved = client.reserve(reserve).await.unwrap().into_inner();
    assert_eq!((reserved.applied, reserved.wait.unwrap().seconds), (true, 30));
    let cancel =
        CancelReservationRequest { resource, consumer, inline: bucket_of_5, id, ..Default::default() };
    assert!(client.cancel_reservation(cancel).await.unwrap().into_inner().cancelled);
}

/// Otherwise two calls with a window of 1 µs would make any window full again.
async fn separate_numbers_are_limits_of_their_own(server: &Server) {
    let mut client = server.client().await;
    server.clock.set(BASE);
    let mut allowed = async |separate, count, span_us: u32| {
        let span =
            Duration { seconds: i64::from(span_us / 1_000_000), nanos: (span_us % 1_000_000) as i32 * 1_000 };
        let log = Algorithm::SlidingLog(InlineWindow { limit: count, window: Some(span) });
        let inline = bring(if separate { "own" } else { "shared" }, log, "separate", "bob").inline;
        let inline = inline.map(|limit| InlineLimit { separate, ..limit });
        let answer = client.should_allow(ShouldAllowRequest { inline, ..ask("separate", "bob") }).await;
        answer.unwrap().into_inner().allowed
    };
    const HOUR: u32 = 3_600_000_000;
    for (separate, after) in [(false, true), (true, false)] {
        for _ in 0..3 {
            assert!(allowed(separate, 3, HOUR).await);
        }
        assert!(!allowed(separate, 3, HOUR).await);
        for step in 1..3 {
            server.clock.set(Micros(BASE.0 + step * 10));
            allowed(separate, 3, 1).await;
        }
        assert_eq!(allowed(separate, 3, HOUR).await, after, "separate: {separate}");
        server.clock.set(BASE);
    }
}

async fn lists_ids_and_batches_work(server: &Server) {
    let mut client = server.client().await;
    let denied = client.should_allow(bring("l", bucket(1), "api", "mallory")).await.unwrap().into_inner();
    assert_eq!((denied.allowed, denied.reason()), (false, Reason::DenyList));
    let listed = client.should_allow(bring("l", bucket(0), "api", "keeper")).await.unwrap().into_inner();
    assert_eq!((listed.allowed, listed.reason()), (true, Reason::AllowList));
    let once =
        |name: &str| ShouldAllowRequest { id: "call-1".to_owned(), ..bring(name, bucket(5), "once", "bob") };
    for (name, applied, remaining) in [("a", true, 4), ("a", false, 4), ("b", true, 4)] {
        let answer = client.should_allow(once(name)).await.unwrap().into_inner();
        assert_eq!((answer.applied, answer.remaining), (Some(applied), Some(remaining)), "{name}");
    }
    let requests = vec![
        bring("l", bucket(2), "batch", "bob"),
        ask_under("bucket", "batch", "bob"),
        bring("l", bucket(2), "batch", "bob"),
        bring("!", bucket(2), "batch", "bob"),
        bring("l", bucket(2), "batch", "bob"),
    ];
    let results = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap().into_inner();
    let shown: Vec<String> = results
        .results
        .into_iter()
        .map(|result| match result.result.unwrap() {
            Ended::Response(answer) => format!("{} {:?}", answer.allowed, answer.remaining),
            Ended::Error(error) => error.message.chars().take(16).collect(),
        })
        .collect();
    let expected = ["true Some(1)", "true Some(4)", "true Some(0)", "inline.name is \"", "false Some(0)"];
    assert_eq!(shown, expected);
}

/// A worker keeps 1,024 of them.
async fn more_than_are_kept_are_built_again(server: &Server) {
    let mut client = server.client().await;
    for round in [1, 2] {
        let mut requests = (0..1500).map(|index| bring(&format!("many-{index}"), bucket(2), "many", "bob"));
        for _ in 0..3 {
            let requests = requests.by_ref().take(500).collect();
            let answer = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
            for result in answer.into_inner().results {
                let Some(Ended::Response(answer)) = result.result else { panic!("{result:?}") };
                assert_eq!((answer.allowed, answer.remaining), (true, Some(2 - round)));
            }
        }
    }
}

#[tokio::test]
async fn they_are_off_until_they_are_wanted() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let status = client.should_allow(bring("l", bucket(1), "api", "bob")).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(
        status.message(),
        "inline: this server takes no limits from requests; name a configured strategy, or set \
         `server.inline_limits: true`"
    );
}

#[tokio::test]
async fn a_bad_field_is_named_with_its_value_and_its_bound() {
    let server = Server::ready(rules());
    let mut client = server.client().await;
    let token_bucket = |rate, period, burst| {
        bring("l", Algorithm::TokenBucket(InlineTokenBucket { rate, period, burst }), "api", "bob")
    };
    let log = |limit, window| bring("l", Algorithm::SlidingLog(InlineWindow { limit, window }), "api", "bob");
    let fixed =
        |limit, window| bring("l", Algorithm::FixedWindow(InlineWindow { limit, window }), "api", "bob");
    let name = |name: &str| bring(name, bucket(1), "api", "bob");
    let nothing = InlineLimit { name: "l".to_owned(), ..InlineLimit::default() };
    let policy = InlineLimit {
        name: "l".to_owned(),
        algorithm: Some(bucket(1)),
        on_store_failure: 9,
        ..InlineLimit::default()
    };
    let under = |inline| ShouldAllowRequest { inline: Some(inline), ..ask("api", "bob") };
    let name_bound = "it must be 1 to 64 of the characters A-Z a-z 0-9 . _ - /";
    let span_bound = "it must be from 1us to 400 days";
    let (days, at_most) = (86_400, 400 * 86_400);
    let sliding =
        |limit, window| bring("l", Algorithm::SlidingWindow(InlineWindow { limit, window }), "api", "bob");
    for (request, message) in [
        (name(""), format!("inline.name is \"\": {name_bound}").as_str()),
        (name("a b"), &format!("inline.name is \"a b\": {name_bound}")),
        (name(&"x".repeat(65)), &format!("inline.name is \"{}…\": {name_bound}", "x".repeat(64))),
        (
            under(nothing),
            "inline.algorithm is not set: it must be one of token_bucket, fixed_window, sliding_window, \
             sliding_log, bucketed_window",
        ),
        (
            under(policy),
            "inline.on_store_failure is 9: it must be 0 (not set), 1 (ERROR), 2 (ALLOW) or 3 (DENY)",
        ),
        (token_bucket(1, None, None), &format!("inline.token_bucket.period is not set: {span_bound}")),
        (token_bucket(1, seconds(0), None), &format!("inline.token_bucket.period is 0s: {span_bound}")),
        (
            token_bucket(1, seconds(-1), None),
            &format!("inline.token_bucket.period is -1 s and 0 ns: {span_bound}"),
        ),
        (
            token_bucket(0, seconds(1), None),
            "inline.token_bucket.rate is 0: a rate of 0 never refills; it must be at least 1 per period",
        ),
        (
            token_bucket(1, seconds(1_000_000), Some(10_000_000)),
            "inline.token_bucket.burst is 10000000: the time to fill it must be at most 400 days",
        ),
        (
            token_bucket(1, seconds(days), Some(401)),
            "inline.token_bucket.burst is 401: the time to fill it must be at most 400 days",
        ),
        (
            token_bucket(1, seconds(at_most + 1), None),
            &format!("inline.token_bucket.period is 34560001s: {span_bound}"),
        ),
        (fixed(1, seconds(at_most + 1)), &format!("inline.fixed_window.window is 34560001s: {span_bound}")),
        (log(1, seconds(at_most + 1)), &format!("inline.sliding_log.window is 34560001s: {span_bound}")),
        (
            sliding(1, seconds(at_most / 2 + 1)),
            "inline.sliding_window.window is 17280001s: it must be from 1us to 200 days: a sliding window counts for two \
             windows",
        ),
        (fixed(1 << 52, seconds(1)), "inline.fixed_window.limit is 4503599627370496: it must be below 2^52"),
        (fixed(1, None), &format!("inline.fixed_window.window is not set: {span_bound}")),
        (
            log(1001, seconds(1)),
            "inline.sliding_log.limit is 1001: it must be at most 1000, because a log keeps an entry for each call",
        ),
        (
            ShouldAllowRequest { strategy: "bucket".to_owned(), ..name("l") },
            "strategy is \"bucket\": it must be empty, because the request brings a limit along",
        ),
        (
            ShouldAllowRequest { consumer: String::new(), ..name("l") },
            "consumer is \"\": it must be 1 to 512 bytes, because a limit of strategy `inline=l` counts by consumer",
        ),
    ] {
        let status = client.should_allow(request).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, message));
    }
    let answer = client.should_allow(name("l")).await.unwrap().into_inner();
    assert_eq!(answer.remaining, Some(0), "nothing was charged before");
    let (_, metrics) = server.get("/metrics");
    let line = r#"weir_decisions_total{strategy="inline",outcome="allowed"} 1"#;
    let inline: Vec<&str> = metrics.lines().filter(|line| line.contains("inline")).collect();
    assert!(inline.contains(&line), "{inline:?}");
}

#[tokio::test]
async fn their_own_policy_answers_for_the_store() {
    // Connections to this port are refused.
    let nowhere = redis_config(vec!["127.0.0.1:1".to_owned()], Topology::Single);
    let store = StoreConfig::Redis(RedisConfig { deadline: Micros(100_000), ..nowhere });
    let server = Server::start(Config { store, ..rules() });
    let mut client = server.client().await;
    for (policy, expected) in [
        (StoreFailurePolicy::Unspecified, Err(Code::Unavailable)),
        (StoreFailurePolicy::Error, Err(Code::Unavailable)),
        (StoreFailurePolicy::Allow, Ok((true, true))),
        (StoreFailurePolicy::Deny, Ok((false, true))),
    ] {
        let mut request = bring("l", bucket(1), "api", "bob");
        request.inline.as_mut().unwrap().on_store_failure = policy.into();
        let answer = client.should_allow(request).await;
        let answer = answer.map(|answer| (answer.get_ref().allowed, answer.get_ref().degraded));
        assert_eq!(answer.map_err(|status| status.code()), expected, "{policy:?}");
    }
}

#[test]
fn a_strategy_cannot_have_the_name_that_they_are_counted_under() {
    let text = RULES.replace("  bucket:", "  inline:");
    let errors = Config::parse(&text, "weir.yaml", &ConfigOverrides::default()).unwrap_err().to_string();
    assert!(errors.contains("strategies.inline") && errors.contains("server.inline_limits"), "{errors}");
    let off = text.replace("inline_limits: true", "inline_limits: false");
    assert!(Config::parse(&off, "weir.yaml", &ConfigOverrides::default()).is_ok());
}
