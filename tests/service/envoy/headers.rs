//! The headers that clients get beside Envoy's own, and the metadata for Envoy's access log.

use serde_json::json;
use weir_envoy::settings::EnvoyConfig;

use crate::support::envoy::{EnvoyProcess, patient};

use super::{shipped, weir_with};

#[tokio::test]
async fn ratelimit_headers_when_asked_for() {
    let weir = weir_with(EnvoyConfig { config: Some(shipped()), headers: true, ..EnvoyConfig::default() });
    let Some(envoy) = EnvoyProcess::start("envoy.yaml", weir.grpc).await else { return };
    let mut client = envoy.client().await;
    for (status, remaining) in [(200, "1"), (200, "0"), (429, "0")] {
        let answer = client.get("/hello", &[]).await;
        let headers =
            ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"].map(|name| answer.header(name));
        assert_eq!((answer.status, headers), (status, ["2", remaining, "60"]));
    }
    let health = client.get("/health", &[]).await;
    assert_eq!((health.status, health.header("ratelimit-limit")), (200, ""));
}

#[tokio::test]
async fn dynamic_metadata_when_asked_for() {
    let weir =
        weir_with(EnvoyConfig { config: Some(shipped()), dynamic_metadata: true, ..EnvoyConfig::default() });
    let host = "domains: [\"*\"]\n";
    let shown = "%DYNAMIC_METADATA(envoy.filters.http.ratelimit)%";
    let header =
        format!("response_headers_to_add: [{{ header: {{ key: x-metadata, value: \"{shown}\" }} }}]\n");
    let config = patient("envoy.yaml").replacen(host, &format!("{host}                      {header}"), 1);
    let Some(envoy) = EnvoyProcess::start_with(&config, weir.grpc).await else { return };
    let mut client = envoy.client().await;
    let answer = client.get("/hello", &[]).await;
    let metadata: serde_json::Value = serde_json::from_str(answer.header("x-metadata")).unwrap();
    let descriptors = json!([{ "entries": ["remote_address=127.0.0.1"] }]);
    assert_eq!(metadata, json!({ "domain": "edge", "descriptors": descriptors }));
}
