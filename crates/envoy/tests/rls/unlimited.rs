//! Rules without a limit: what they say, and what they do not.

use std::fs;

use weir_envoy::settings::EnvoyConfig;

use super::notation::{answer, request};
use super::{client, memory, serve};
use crate::support::scratch;

const FILE: &str = "
domain: d
descriptors:
  - {key: free, rate_limit: {unlimited: true, name: tier}, metadata: {plan: free}}
  - {key: paid, rate_limit: {unit: minute, requests_per_unit: 5, name: tier}, metadata: {plan: paid}}
  - {key: other, rate_limit: {unit: minute, requests_per_unit: 5, replaces: [{name: tier}]}, metadata: {side: other}}
";

async fn answer_and_metadata(asked: &str) -> (String, Vec<String>) {
    let folder = scratch::dir("envoy-unlimited-");
    fs::write(folder.path().join("d.yaml"), FILE).unwrap();
    let config = Some(folder.path().to_owned());
    let server = serve(memory(), EnvoyConfig { config, dynamic_metadata: true, ..EnvoyConfig::default() });
    let response =
        client(&server).await.should_rate_limit(request(asked)).await.map(tonic::Response::into_inner);
    let metadata = response.as_ref().unwrap().dynamic_metadata.clone().unwrap();
    let kind = metadata.fields.get("metadata").and_then(|value| value.kind.clone());
    let names = match kind {
        Some(prost_types::value::Kind::StructValue(metadata)) => metadata.fields.into_keys().collect(),
        _ => Vec::new(),
    };
    (answer(&response), names)
}

#[tokio::test]
async fn an_unlimited_rule_keeps_its_status_when_it_is_replaced() {
    let (answer, _) = answer_and_metadata("d [free=v] [other=v]").await;
    assert_eq!(answer, "OK | OK 4294967295 | OK 4 of 5/MINUTE 60s");
    let (answer, _) = answer_and_metadata("d [paid=v] [other=v]").await;
    assert_eq!(answer, "OK | OK | OK 4 of 5/MINUTE 60s", "one with a limit is replaced");
}

#[tokio::test]
async fn an_unlimited_rule_returns_no_metadata() {
    assert_eq!(answer_and_metadata("d [free=v]").await.1, Vec::<String>::new());
    assert_eq!(answer_and_metadata("d [free=v] [other=v]").await.1, ["side"]);
    assert_eq!(answer_and_metadata("d [paid=v]").await.1, ["plan"]);
}
