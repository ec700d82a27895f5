//! Limits as clients meet them: deploy/envoy/envoy.yaml.

use crate::support::envoy::{EnvoyProcess, patient};
use crate::support::http::HttpResponse;

use super::{later, shipped, weir};

/// `x-ratelimit-limit`, `-remaining` and `-reset`.
fn limit_headers(answer: &HttpResponse) -> [&str; 3] {
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(|name| answer.header(name))
}

#[tokio::test]
async fn two_pass_and_the_third_gets_a_retry_time() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    for (status, remaining) in [(200, "1"), (200, "0"), (429, "0"), (429, "0")] {
        let answer = client.get("/hello", &[]).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(limit_headers(&answer), ["2, 2;w=60", remaining, "60"]);
        let (limited, body) = if status == 429 { ("true", "") } else { ("", "hello\n") };
        assert_eq!((answer.header("x-envoy-ratelimited"), answer.body.as_str()), (limited, body));
    }
    let other = envoy.client_from([127, 0, 0, 2]).await.get("/hello", &[]).await;
    assert_eq!((other.status, limit_headers(&other)[1]), (200, "1"), "each address has its own");
    assert_eq!(client.get("/health", &[]).await.status, 200, "nobody is asked");

    later(&weir, 59_900);
    let last = client.get("/hello", &[]).await;
    assert_eq!((last.status, limit_headers(&last)), (429, ["2, 2;w=60", "0", "1"]));
    later(&weir, 100);
    let next = client.get("/hello", &[]).await;
    assert_eq!((next.status, limit_headers(&next)), (200, ["2, 2;w=60", "1", "60"]));

    assert_eq!(envoy.stat("cluster.app.ratelimit.ok").await, 4);
    assert_eq!(envoy.stat("cluster.app.ratelimit.over_limit").await, 3);
    assert_eq!(envoy.stat("cluster.app.ratelimit.error").await, 0);
}

#[tokio::test]
async fn a_route_has_limits_of_its_own() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let mut addresses = (1..).map(|last| [127, 0, 0, last]);
    let mut search = async |key| {
        let mut client = envoy.client_from(addresses.next().unwrap()).await;
        client.get("/search", &[("x-api-key", key)]).await
    };
    let searches = "1, 2;w=60, 1;w=3600;name=\"searches\"";
    let first = search("bob").await;
    assert_eq!((first.status, limit_headers(&first)), (200, [searches, "0", "3600"]));
    let second = search("bob").await;
    assert_eq!((second.status, limit_headers(&second)), (429, [searches, "0", "3600"]));
    assert_eq!(search("alice").await.status, 200, "each key has its own");
}

/// The other limit of the request is charged although this one denies.
#[tokio::test]
async fn a_limit_that_is_over_does_not_spare_the_others() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    let key = [("x-api-key", "bob")];
    assert_eq!(client.get("/search", &key).await.status, 200);
    assert_eq!(client.get("/search", &key).await.status, 429);
    let hello = client.get("/hello", &[]).await;
    assert_eq!(
        (hello.status, limit_headers(&hello)),
        (429, ["2, 2;w=60", "0", "60"]),
        "both searches were counted"
    );
}

#[tokio::test]
async fn shadow_mode_only_counts() {
    let weir = weir(shipped());
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    for last in 1..=3 {
        let mut client = envoy.client_from([127, 0, 0, last]).await;
        let answer = client.get("/search", &[("x-api-key", "trial")]).await;
        assert_eq!((answer.status, limit_headers(&answer)[1]), (200, "0"), "{answer:?}");
    }
    let shadowed = "weir_envoy_shadow_mode_total{domain=\"edge\",rule=\"route=search,api_key=trial\"} 2\n";
    let metrics = weir.get("/metrics").1;
    assert!(metrics.contains(shadowed), "{metrics}");
}

/// How docs/envoy.md lets Weir run beside another service first.
#[tokio::test]
async fn a_filter_that_is_not_enforced_only_asks() {
    let weir = weir(shipped());
    let domain = "                      domain: edge\n";
    let asks = format!("{domain}                      {NOT_ENFORCED}\n");
    let config = patient("envoy.yaml").replace(domain, &asks);
    let Some(envoy) = EnvoyProcess::start_with(&config, weir.grpc).await else { return };
    let mut client = envoy.client().await;
    for _ in 0..3 {
        assert_eq!(client.get("/hello", &[]).await.status, 200);
    }
    assert_eq!(envoy.stat("cluster.app.ratelimit.over_limit").await, 1);
    let docs = include_str!("../../../docs/envoy.md");
    assert!(docs.contains(NOT_ENFORCED));
}

const NOT_ENFORCED: &str = "filter_enforced: { default_value: { numerator: 0 } }";
