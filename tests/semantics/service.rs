//! The contract of `ShouldAllow`, over real sockets, on a clock that stands still.

use std::sync::Arc;
use std::time::Duration;
use weir_config::Config;
use weir_core::algorithm::Algorithm;
use weir_core::strategy::{FailurePolicy, Field, Resources, Rules};

use tonic::{Code, Request};
use weir_proto::v1::{LimitStatus, Reason, ShouldAllowRequest, ShouldAllowResponse};
use weir_store::{Answers, Decision, Store, StoreError};
use weir_units::Micros;

use crate::support::rules::strategy;
use crate::support::server::{BASE, Server, ask, ask_under, config};

/// `seconds` as the wire writes them.
fn span(seconds: f64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration::try_from(Duration::from_secs_f64(seconds)).unwrap())
}

async fn one(server: &Server, request: ShouldAllowRequest) -> ShouldAllowResponse {
    server.client().await.should_allow(request).await.unwrap().into_inner()
}

#[tokio::test]
async fn an_allowed_call_lists_every_limit() {
    let server = Server::start(config());
    let answer = one(&server, ask("zewtopia.com/tigerfeeding", "bob")).await;
    let limit = |name: &str, limit, remaining| LimitStatus {
        name: name.to_owned(),
        allowed: true,
        limit,
        remaining,
        retry_after: None,
        reset_after: span(10.0),
        cause: String::new(),
        ..LimitStatus::default()
    };
    let expected = ShouldAllowResponse {
        allowed: true,
        limit: Some(1),
        remaining: Some(0),
        retry_after: None,
        reset_after: span(10.0),
        reason: Reason::Ok.into(),
        denied_by: vec![],
        limits: vec![limit("everyone", 100, 99), limit("each", 1, 0)],
        message: String::new(),
        degraded: false,
        ..ShouldAllowResponse::default()
    };
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_denied_call_names_the_limits_that_deny_and_the_wait() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let request = ask("zewtopia.com/tigerfeeding", "bob");
    client.should_allow(request.clone()).await.unwrap();
    server.clock.set(Micros(BASE.0 + 6_500_000));
    let answer = client.should_allow(request).await.unwrap().into_inner();
    assert!(!answer.allowed);
    assert_eq!(answer.reason(), Reason::Limited);
    assert_eq!(answer.denied_by, ["each"]);
    assert_eq!((answer.limit, answer.remaining), (Some(1), Some(0)));
    assert_eq!((answer.retry_after, answer.reset_after), (span(3.5), span(3.5)));
    assert_eq!(answer.message, "Rate limit exceeded. Try again in 4 seconds");
    let [everyone, each] = &answer.limits[..] else { panic!("two limits") };
    assert_eq!((everyone.allowed, everyone.remaining, everyone.retry_after), (true, 99, None));
    assert_eq!((everyone.cause.as_str(), each.cause.as_str()), ("", "count"));
    assert_eq!((each.allowed, each.retry_after), (false, span(3.5)));
}

#[tokio::test]
async fn the_wait_is_minimal_to_the_microsecond() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let request = ask("zewtopia.com/tigerfeeding", "bob");
    client.should_allow(request.clone()).await.unwrap();
    server.clock.set(Micros(BASE.0 + 9_999_999));
    let denied = client.should_allow(request.clone()).await.unwrap().into_inner();
    assert_eq!((denied.allowed, denied.retry_after), (false, span(0.000_001)));
    assert_eq!(denied.message, "Rate limit exceeded. Try again in 1 second");
    server.clock.set(Micros(BASE.0 + 10_000_000));
    assert!(client.should_allow(request).await.unwrap().into_inner().allowed);
}

#[tokio::test]
async fn a_cost_above_the_limit_is_never_and_no_error() {
    let server = Server::start(config());
    let answer = one(&server, ShouldAllowRequest { cost: Some(6), ..ask("burst/x", "bob") }).await;
    assert!(!answer.allowed);
    assert_eq!(answer.reason(), Reason::Never);
    assert_eq!((answer.retry_after, answer.limits[0].retry_after), (None, None));
    assert_eq!(answer.limits[0].cause, "never");
    assert_eq!(answer.denied_by, ["each"]);
    let message = "Rate limit exceeded. A cost of 6 is above the limit of 5 and can never pass";
    assert_eq!(answer.message, message);
    let largest = one(&server, ShouldAllowRequest { cost: Some(u64::MAX), ..ask("burst/x", "bob") }).await;
    assert_eq!(largest.reason(), Reason::Never);
}

#[tokio::test]
async fn costs_add_up_and_looking_takes_nothing() {
    let server = Server::start(config());
    let with_cost = |cost| ShouldAllowRequest { cost: Some(cost), ..ask("burst/x", "bob") };
    let peek = |cost| ShouldAllowRequest { peek: true, ..with_cost(cost) };
    assert_eq!(one(&server, with_cost(3)).await.remaining, Some(2));
    for look in [with_cost(0), peek(2)] {
        let answer = one(&server, look).await;
        assert_eq!((answer.allowed, answer.remaining), (true, Some(2)));
    }
    let refused = one(&server, peek(3)).await;
    assert_eq!((refused.allowed, refused.remaining, refused.retry_after), (false, Some(2), span(1.0)));
    assert_eq!(one(&server, ask("burst/x", "bob")).await.remaining, Some(1));
    assert_eq!(one(&server, ask("burst/x", "eve")).await.remaining, Some(4));
}

#[tokio::test]
async fn an_explicit_strategy_serves_any_resource() {
    let server = Server::start(config());
    let answer = one(&server, ask_under("everybody", "a resource nobody configured", "")).await;
    assert_eq!((answer.allowed, answer.limit, answer.remaining), (true, Some(3), Some(2)));
}

#[tokio::test]
async fn an_attribute_has_counters_of_its_own() {
    let server = Server::start(config());
    let mut remaining = Vec::new();
    for (region, consumer) in [("eu", "bob"), ("eu", "bob"), ("eu", "bob"), ("eu", "eve"), ("us", "bob")] {
        let answer = one(&server, in_region(region, consumer)).await;
        remaining.push((answer.allowed, answer.limits[0].remaining, answer.limits[1].remaining));
    }
    // What is denied tells what the other limit has, uncharged.
    assert_eq!(remaining, [(true, 2, 1), (true, 1, 0), (false, 1, 0), (true, 0, 1), (true, 2, 1)]);
}

fn in_region(region: &str, consumer: &str) -> ShouldAllowRequest {
    let attributes = [("region", region), ("nobody-counts-by", "this")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    ShouldAllowRequest { attributes, ..ask_under("regional", "x", consumer) }
}

/// A store that fails, at once or only when the caller's deadline is near.
struct Failing {
    slowly: bool,
    error: StoreError,
}

impl Store for Failing {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            let (slowly, error, deadline) = (self.slowly, self.error.clone(), decision.deadline.copied());
            answers.later(async move {
                if slowly {
                    let deadline = deadline.expect("the caller named a deadline");
                    tokio::time::sleep_until(deadline.into()).await;
                }
                Err(error)
            });
        }
    }
}

#[tokio::test]
async fn the_failure_policy_answers_for_every_kind_of_error() {
    let address: Arc<str> = "10.1.2.3:6379 says no".into();
    let errors = [
        StoreError::Timeout,
        StoreError::Unavailable(address.clone()),
        StoreError::Congested,
        StoreError::Overloaded(7),
        StoreError::Full(7),
        StoreError::LocalFull(7),
        StoreError::Unreadable(address.clone()),
        StoreError::Refused(address),
    ];
    // The others are refused for what callers ask. No policy answers them.
    let callers = [
        (StoreError::Unsupported("no"), Code::FailedPrecondition),
        (StoreError::OtherCost(7), Code::AlreadyExists),
        (StoreError::OtherContents, Code::AlreadyExists),
        (StoreError::TooManyEnds, Code::ResourceExhausted),
        (StoreError::IdsFull(7), Code::ResourceExhausted),
    ];
    assert_eq!(errors.len() + callers.len(), StoreError::KINDS.len());
    for (error, code) in callers {
        let server = Server::with_store(config(), move || Failing { slowly: false, error: error.clone() });
        let mut client = server.client().await;
        for strategy in ["open", "closed", "burst"] {
            let status = client.should_allow(ask_under(strategy, "x", "bob")).await.unwrap_err();
            assert_eq!(status.code(), code, "{strategy}");
        }
    }
    for error in errors {
        let failing = error.clone();
        let server = Server::with_store(config(), move || Failing { slowly: false, error: failing.clone() });
        let mut client = server.client().await;
        for (strategy, allowed) in [("open", true), ("closed", false)] {
            let answer = client.should_allow(ask_under(strategy, "x", "bob")).await.unwrap().into_inner();
            assert_eq!((answer.allowed, answer.degraded), (allowed, true));
            assert_eq!(answer.reason(), Reason::StoreFailure);
            assert_eq!((answer.limit, answer.remaining), (None, None));
            assert_eq!((answer.retry_after, answer.reset_after), (None, None));
            assert_eq!((answer.limits.len(), answer.denied_by.len()), (0, 0));
            assert_eq!(answer.message.is_empty(), allowed);
        }
        let status = client.should_allow(ask_under("burst", "x", "bob")).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().contains("on_store_failure"), "{}", status.message());
        assert!(status.message().contains(error.kind()), "{}", status.message());
        assert!(!status.message().contains("10.1.2.3"), "inner words stay inside: {}", status.message());
    }
}

#[tokio::test]
async fn the_policy_answers_before_the_caller_gives_up() {
    const TIMEOUT: Duration = Duration::from_millis(250);
    /// A machine that runs all tests at once may stall for longer than the margin, but not every time; a
    /// service that leaves no margin is late every time.
    const TRIES: usize = 100;
    let server = Server::with_store(config(), || Failing { slowly: true, error: StoreError::Timeout });
    let mut client = server.client().await;
    let mut answers = Vec::new();
    for _ in 0..TRIES {
        let mut request = Request::new(ask_under("closed", "x", "bob"));
        request.set_timeout(TIMEOUT);
        match client.should_allow(request).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                assert_eq!((answer.allowed, answer.degraded), (false, true));
                return;
            }
            Err(status) => answers.push(status.to_string()),
        }
    }
    panic!("the caller gave up first every time: {answers:?}");
}

/// A login that is tried again too soon is denied for the gap, not for the count of attempts.
#[tokio::test]
async fn a_call_too_soon_after_the_last_is_denied_for_the_gap() {
    let login = Algorithm::strict_log(5, Micros::from_secs(60), true, Micros::from_secs(2)).unwrap();
    let strategy = strategy("login", &[("attempts", &[Field::Consumer], login)], FailurePolicy::Error);
    let rules = Rules::new(vec![strategy], Resources::default());
    let server = Server::start(Config { rules, ..config() });
    let mut client = server.client().await;
    let request = ask_under("login", "account", "bob");
    assert!(client.should_allow(request.clone()).await.unwrap().into_inner().allowed);
    server.clock.set(Micros(BASE.0 + 1_000_000));
    let denied = client.should_allow(request).await.unwrap().into_inner();
    assert_eq!((denied.allowed, denied.retry_after), (false, span(2.0)));
    assert_eq!((denied.limits[0].cause.as_str(), denied.reason()), ("min_gap", Reason::Limited));
}
