//! A real Envoy in front, over TLS as Envoy Gateway has it: it sends no server name, compares no name, and offers a
//! certificate that nobody asks for.

use super::{Ratelimit, files};
use crate::support::clients::root;
use crate::support::envoy::{EnvoyProcess, patient};

const FILE: &str = "domain: edge
descriptors:
  - { key: remote_address, rate_limit: { unit: hour, requests_per_unit: 3 } }
";

/// A file of those that Envoy Gateway makes.
fn made(name: &str) -> String {
    root().join("tests/certificates").join(name).display().to_string()
}

/// The example, which asks this process over TLS.
fn envoy_config(started: &Ratelimit) -> String {
    let [ca, cert, key] = ["gateway-ca.pem", "gateway-server.pem", "gateway-server.key"].map(made);
    // Without `sni`, and without a match of names.
    let socket = format!(
        "      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          common_tls_context:
            tls_params: {{ tls_maximum_protocol_version: TLSv1_3 }}
            tls_certificates: [{{ certificate_chain: {{ filename: {cert:?} }}, private_key: {{ filename: {key:?} }} }}]
            validation_context: {{ trusted_ca: {{ filename: {ca:?} }} }}
"
    );
    let own = "socket_address: { address: 127.0.0.1, port_value: 8081 }";
    let there = format!("socket_address: {{ address: {}, port_value: 8081 }}", started.at(8081).ip());
    let before = "      type: STRICT_DNS\n";
    let config = patient("envoy.yaml");
    assert!(config.contains(own) && config.contains(before));
    config.replace(own, &there).replace(before, &format!("{before}{socket}"))
}

#[tokio::test]
async fn over_tls_without_a_server_name() {
    let [cert, key] = ["gateway-ratelimit.pem", "gateway-ratelimit.key"].map(made);
    assert!(std::fs::read_to_string(&key).unwrap().contains("BEGIN RSA PRIVATE KEY"), "PKCS#1");
    let folder = files(FILE);
    let root_of_files = folder.path().join("data").display().to_string();
    let started = Ratelimit::start(&[
        ("RUNTIME_ROOT", &root_of_files),
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", &cert),
        ("GRPC_SERVER_TLS_KEY", &key),
        // Envoy Gateway sets it, and the reference has no such setting.
        ("GRPC_SERVER_TLS_CA_CERT", "/certs/ca.crt"),
    ]);
    let config = envoy_config(&started);
    let Some(envoy) = EnvoyProcess::start_with(&config, started.at(8081)).await else { return };
    let mut client = envoy.client().await;
    for expected in [200, 200, 200, 429] {
        let answer = client.get("/hello", &[]).await;
        assert_eq!(answer.status, expected, "{answer:?}\n{}", envoy.log());
        assert_eq!(answer.header("x-ratelimit-limit"), "3, 3;w=3600");
    }
}
