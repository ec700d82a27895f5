//! Requests that cost nothing, or something else than was thought: deploy/envoy/usage.yaml.

use crate::support::envoy::EnvoyProcess;
use crate::support::http::Http;

use super::{later, remaining, shipped, until_remaining, weir};

/// Status, limit and remaining.
async fn get(client: &mut Http, path: &str) -> (u16, String, String) {
    let answer = client.get(path, &[("x-api-key", "bob")]).await;
    let header = |name| answer.header(name).to_owned();
    (answer.status, header("x-ratelimit-limit"), header("x-ratelimit-remaining"))
}

fn is(status: u16, limit: &str, remaining: &str) -> (u16, String, String) {
    (status, limit.to_owned(), remaining.to_owned())
}

/// Ten tokens a minute, and every answer takes six. A finished answer is billed, also above the limit. Above the limit
/// requests are denied, and a denied request is not billed.
#[tokio::test]
async fn streams_are_billed_when_they_have_ended() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("usage.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    let limit = "10, 10;w=60";
    assert_eq!(get(&mut client, "/chat").await, is(200, limit, "10"));
    // The bill comes when the stream is over, which the client does not wait for.
    until_remaining(&weir, "tokens", 4).await;
    assert_eq!(get(&mut client, "/chat").await, is(200, limit, "4"));
    until_remaining(&weir, "tokens", 0).await;
    for _ in 0..3 {
        assert_eq!(get(&mut client, "/chat").await, is(429, limit, "0"));
    }
    later(&weir, 60_000);
    assert_eq!(get(&mut client, "/chat").await, is(200, limit, "10"), "12 were billed, to this window");
}

/// Two jobs a day; one that failed is given back.
#[tokio::test]
async fn what_failed_is_given_back() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("usage.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    let limit = "2, 2;w=86400";
    for _ in 0..3 {
        assert_eq!(get(&mut client, "/jobs/broken").await, is(500, limit, "1"));
        until_remaining(&weir, "jobs", 2).await;
    }
    assert_eq!(get(&mut client, "/jobs").await, is(200, limit, "1"));
    assert_eq!(get(&mut client, "/jobs").await, is(200, limit, "0"));
    assert_eq!(get(&mut client, "/jobs/broken").await, is(429, limit, "0"));
    assert_eq!(remaining(&weir, "jobs").await, 0, "a denied request is not given back");
}

#[tokio::test]
async fn the_limit_comes_with_the_request() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("usage.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    let limit = "3, 3;w=3600";
    for remaining in ["2", "1", "0"] {
        assert_eq!(get(&mut client, "/plan").await, is(200, limit, remaining));
    }
    assert_eq!(get(&mut client, "/plan").await, is(429, limit, "0"));
}
