//! Weir is down or silent, or its store is down.

use tempfile::TempDir;

use crate::support::envoy::{EnvoyProcess, example};
use crate::support::http::Http;
use crate::support::{RedisServer, SOON, eventually_async, scratch};

use super::service::Service;
use super::shipped;

/// A status, and whether it came with a limit.
async fn hello(client: &mut Http) -> (u16, bool) {
    let answer = client.get("/hello", &[]).await;
    (answer.status, !answer.header("x-ratelimit-limit").is_empty())
}

async fn failures(envoy: &EnvoyProcess) -> [u64; 2] {
    let error = envoy.stat("cluster.app.ratelimit.error").await;
    [error, envoy.stat("cluster.app.ratelimit.failure_mode_allowed").await]
}

#[tokio::test]
async fn requests_pass_while_weir_is_gone() {
    let mut weir = Service::start(&shipped(), "");
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    assert_eq!(hello(&mut client).await, (200, true));
    weir.process.kill();
    for _ in 0..5 {
        assert_eq!(hello(&mut client).await, (200, false));
    }
    assert_eq!(failures(&envoy).await, [5, 5]);
    weir.restart();
    let asked = async || hello(&mut client).await == (200, true);
    eventually_async(SOON, "Weir is asked again", asked).await;
}

#[tokio::test]
async fn requests_are_refused_while_weir_is_gone() {
    let mut weir = Service::start(&shipped(), "");
    let Some(envoy) = EnvoyProcess::start("fail-closed.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    assert_eq!(hello(&mut client).await, (200, true));
    weir.process.kill();
    for _ in 0..5 {
        assert_eq!(hello(&mut client).await, (503, false));
    }
    assert_eq!(failures(&envoy).await, [5, 0]);
    weir.restart();
    let asked = async || hello(&mut client).await == (200, true);
    eventually_async(SOON, "Weir is asked again", asked).await;
}

/// The connection is accepted and nothing answers, so Envoy's timeout of 20 ms decides.
#[tokio::test]
async fn requests_pass_while_weir_is_silent() {
    let dir = rules();
    let mut weir = Service::start(dir.path(), "");
    let Some(envoy) = EnvoyProcess::start_with(&example("envoy.yaml"), weir.grpc).await else { return };
    let mut client = envoy.client().await;
    let mut turns = async |asked| {
        let turned = async || hello(&mut client).await == (200, asked);
        eventually_async(SOON, if asked { "Weir answers" } else { "Weir is silent" }, turned).await;
    };
    turns(true).await;
    weir.process.freeze();
    turns(false).await;
    weir.process.thaw();
    turns(true).await;
}

/// Weir itself is well, but its Redis is gone. Unless a rule says what then, Weir says that it does not
/// know, and Envoy's own failure mode decides.
#[tokio::test]
async fn without_redis_the_rule_decides_or_envoy() {
    let redis = RedisServer::start();
    let dir = rules();
    let nodes = format!("nodes: [\"{}\"]", redis.url());
    let store = format!("store: {{ redis: {{ {nodes}, deadline: 4s, connect_timeout: 4s }} }}");
    let weir = Service::start(dir.path(), &store);
    let Some(open) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let Some(closed) = EnvoyProcess::start("fail-closed.yaml", weir.grpc).await else { return };
    let ask = async |envoy: &EnvoyProcess, last| hello(&mut envoy.client_from([127, 0, 0, last]).await).await;
    let found = async || ask(&open, 1).await == (200, true);
    eventually_async(SOON, "Redis decides", found).await;

    redis.kill();
    let gone = async || ask(&open, 1).await == (200, false);
    eventually_async(SOON, "Redis is gone", gone).await;
    assert_eq!(ask(&closed, 1).await, (503, false));
    for envoy in [&open, &closed] {
        assert_eq!(ask(envoy, 2).await.0, 200, "the rule allows");
        assert_eq!(ask(envoy, 3).await.0, 429, "the rule denies");
    }
    redis.restart();
    let back = async || ask(&closed, 1).await == (200, true);
    eventually_async(SOON, "Redis decides again", back).await;
    assert_eq!(ask(&closed, 3).await, (200, true));
}

fn rules() -> TempDir {
    let dir = scratch::dir("limits");
    std::fs::write(dir.path().join("edge.yaml"), RULES).unwrap();
    dir
}

const RULES: &str = "
domain: edge
descriptors:
  - { key: remote_address, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - key: remote_address
    value: 127.0.0.2
    rate_limit: { unit: day, requests_per_unit: 1000000, on_store_failure: allow }
  - key: remote_address
    value: 127.0.0.3
    rate_limit: { unit: day, requests_per_unit: 1000000, on_store_failure: deny }
";
