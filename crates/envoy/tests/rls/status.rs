//! The service itself: its health, its failures, its files.

use std::fs;

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use weir_config::{StoreConfig, Topology};
use weir_envoy::settings::EnvoyConfig;

use super::notation::{answer, request};
use super::{Client, client, memory, serve};
use crate::support::server::{Server, config};
use crate::support::{RedisServer, SOON, eventually, redis_config, scratch};

#[tokio::test]
async fn health_answers_under_the_name_of_the_reference_and_of_the_service() {
    let server = serve(memory(), EnvoyConfig::default());
    let mut health = HealthClient::new(server.channel().await);
    for service in ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status().as_str_name(), "SERVING", "{service}");
    }
    let unknown = HealthCheckRequest { service: "envoy".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn without_files_there_is_an_error_and_no_made_up_answer() {
    let server = Server::start(config());
    let answer = ask(&mut client(&server).await, "another [key2=v]").await;
    assert_eq!(answer, "FailedPrecondition: no rate limit configuration loaded");
}

const POLICIES: &str = "
domain: d
descriptors:
  - {key: error, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: allow, rate_limit: {unit: minute, requests_per_unit: 5, on_store_failure: allow}}
  - {key: deny, rate_limit: {unit: minute, requests_per_unit: 5, on_store_failure: deny}}
  - {key: shady, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 5, on_store_failure: deny}}
  - {key: free, rate_limit: {unlimited: true}}
";

/// An answer by the failure policy has no numbers, because the store did not give any.
#[tokio::test]
async fn without_the_store_each_rule_answers_as_it_says() {
    let redis = RedisServer::start();
    let folder = scratch::dir("envoy-policies");
    fs::write(folder.path().join("d.yaml"), POLICIES).unwrap();
    let store = redis_config(vec![redis.url()], Topology::Single);
    let files =
        EnvoyConfig { config: Some(folder.path().to_owned()), headers: true, ..EnvoyConfig::default() };
    let server = serve(StoreConfig::Redis(store), files);
    let mut client = client(&server).await;
    assert_eq!(ask(&mut client, "d [error=v]").await, "OK | OK 4 of 5/MINUTE 60s");
    redis.kill();
    eventually(SOON, "the loss is noticed", || server.get("/readyz").0 == 503);
    assert_eq!(ask(&mut client, "d [allow=v]").await, "OK | OK");
    assert_eq!(ask(&mut client, "d [deny=v]").await, "OVER | OVER");
    assert_eq!(ask(&mut client, "d [shady=v]").await, "OK | OK");
    assert_eq!(ask(&mut client, "d [free=v] [other=v]").await, "OK | OK 4294967295 | OK");
    let answer = ask(&mut client, "d [allow=v] [error=v]").await;
    assert!(answer.starts_with("Unavailable: the store could not decide ("), "{answer}");
    assert!(answer.contains("`on_store_failure` of rule `d.error`"), "{answer}");
    let answer = client.should_rate_limit(request("d [deny=v]")).await.unwrap().into_inner();
    assert!(answer.response_headers_to_add.is_empty(), "{answer:?}");
    let metrics = server.get("/metrics").1;
    assert!(metrics.contains("\nweir_envoy_store_errors_total 6\n"), "{metrics}");
    assert!(metrics.contains("\nweir_envoy_hits_total{domain=\"d\",rule=\"deny\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn the_counts_of_a_rule_survive_a_reload_of_its_file() {
    let folder = scratch::dir("envoy-reload");
    let good = "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: minute, requests_per_unit: 5}}\n";
    fs::write(folder.path().join("good.yaml"), good).unwrap();
    let files = EnvoyConfig { config: Some(folder.path().to_owned()), ..EnvoyConfig::default() };
    let server = serve(memory(), files);
    let mut client = client(&server).await;
    assert_eq!(ask(&mut client, "d [k=v]").await, "OK | OK 4 of 5/MINUTE 60s");
    let loads = |result: &str, count: usize| {
        let line = format!("\nweir_envoy_config_loads_total{{result=\"{result}\"}} {count}\n");
        eventually(SOON, &line, || server.get("/metrics").1.contains(&line));
    };
    loads("ok", 1);
    fs::write(folder.path().join("bad.yaml"), "domain: basic\ndescriptors:\n  - {value: 1}\n").unwrap();
    loads("error", 1);
    assert_eq!(ask(&mut client, "basic [key1=x]").await, "OK | OK");
    assert_eq!(ask(&mut client, "d [k=v]").await, "OK | OK 3 of 5/MINUTE 60s");
    let basic = good.replace("domain: d", "domain: basic").replace("key: k", "key: key1");
    fs::write(folder.path().join("bad.yaml"), basic).unwrap();
    loads("ok", 2);
    assert_eq!(ask(&mut client, "basic [key1=x]").await, "OK | OK 4 of 5/MINUTE 60s");
    assert_eq!(ask(&mut client, "d [k=v]").await, "OK | OK 2 of 5/MINUTE 60s");
    let metrics = server.get("/metrics").1;
    assert!(metrics.contains("\nweir_envoy_hits_total{domain=\"d\",rule=\"k\"} 3\n"), "{metrics}");
}

/// The rules in force answer on a connection with earlier requests, also where the same names now mean something else.
#[tokio::test]
async fn an_open_connection_follows_every_change_of_its_rules() {
    let folder = scratch::dir("envoy-changes");
    let write =
        |rules: &str| fs::write(folder.path().join("d.yaml"), format!("domain: d\ndescriptors:\n{rules}"));
    let limit = |requests: u32| format!("rate_limit: {{unit: minute, requests_per_unit: {requests}}}");
    write(&format!("  - {{key: k, {}}}\n", limit(5))).unwrap();
    let files = EnvoyConfig { config: Some(folder.path().to_owned()), ..EnvoyConfig::default() };
    let server = serve(memory(), files);
    let mut client = client(&server).await;
    for remaining in [4, 3] {
        assert_eq!(ask(&mut client, "d [k=v]").await, format!("OK | OK {remaining} of 5/MINUTE 60s"));
    }
    let changes = [
        (format!("  - {{key: k, {}}}\n", limit(7)), "OK | OK 4 of 7/MINUTE 60s"),
        (
            format!("  - {{key: k, {}}}\n  - {{key: k, value: v, {}}}\n", limit(7), limit(2)),
            "OVER | OVER 0 of 2/MINUTE 60s",
        ),
        (format!("  - {{key: k, descriptors: [{{key: l, {}}}]}}\n", limit(7)), "OK | OK"),
        (
            format!("  - {{key: other, {}}}\n  - {{key: k, {}}}\n", limit(1), limit(9)),
            "OK | OK 5 of 9/MINUTE 60s",
        ),
    ];
    for (place, (rules, expected)) in changes.iter().enumerate() {
        write(rules).unwrap();
        let line = format!("\nweir_envoy_config_loads_total{{result=\"ok\"}} {}\n", place + 2);
        eventually(SOON, &line, || server.get("/metrics").1.contains(&line));
        assert_eq!(ask(&mut client, "d [k=v]").await, *expected, "{rules}");
    }
}

async fn ask(client: &mut Client, asked: &str) -> String {
    answer(&client.should_rate_limit(request(asked)).await.map(tonic::Response::into_inner))
}
