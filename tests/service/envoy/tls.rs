//! Envoy with a transport socket of TLS and a certificate of its own, as docs/security.md has it.

use weir_config::{ClientAuth, ConfigOverrides, EXAMPLE, ServerConfig, TlsConfig, TransportKind};
use weir_envoy::settings::with_envoy;
use weir_testing::certificates::{Authority, Issued};
use weir_testing::clients::root;

use super::*;
use crate::support::envoy::{EnvoyProcess, patient};

/// The example with the transport socket of the page, for this certificate.
fn with_transport_socket(authority: &Authority, own: &Issued) -> String {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let begin = page.find("      transport_socket:\n").expect("the page has it");
    let socket = page[begin..].split("```").next().unwrap();
    let mut socket = socket.replace("weir.example", "weir.test");
    for (shipped, file) in [("tls.crt", &own.cert), ("tls.key", &own.key), ("ca.crt", &authority.ca_file())] {
        let shipped = format!("/etc/envoy/tls/{shipped}");
        assert!(socket.contains(&shipped), "{socket}");
        socket = socket.replace(&shipped, &format!("{file:?}"));
    }
    let before = "      type: STRICT_DNS\n";
    let config = patient("envoy.yaml");
    assert!(config.contains(before));
    config.replace(before, &format!("{before}{socket}"))
}

fn guarded(transport: TransportKind, authority: &Authority) -> Server {
    let rules = "authorize: [{ callers: ['spiffe://prod/envoy'], may: [envoy], envoy_domains: [edge] }]";
    let authorize =
        Config::parse(&format!("{rules}\n{EXAMPLE}"), "rules", &ConfigOverrides::default()).unwrap();
    let issued = authority.issue("server", &["weir.test"]);
    let tls = TlsConfig {
        cert_file: issued.cert,
        key_file: issued.key,
        client_auth: ClientAuth::Required,
        client_ca_file: Some(authority.ca_file()),
        ..TlsConfig::default()
    };
    let server = ServerConfig { transport, tls: Some(tls), ..config().server };
    let envoy = EnvoyConfig { config: Some(shipped()), ..EnvoyConfig::default() };
    Server::ready(with_envoy(Config { server, authorize: authorize.authorize, ..config() }, envoy))
}

/// Envoy asks with its certificate. Another one's has no right, and with `failure_mode_deny: false` requests pass.
#[tokio::test]
async fn envoy_is_known_by_its_certificate() {
    let authority = Authority::create();
    let known = authority.issue("envoy", &["spiffe://prod/envoy"]);
    let other = authority.issue("other", &["spiffe://prod/other"]);
    for transport in [TransportKind::Fast, TransportKind::Tonic] {
        let weir = guarded(transport, &authority);
        for (own, counter) in [(&known, "cluster.app.ratelimit.ok"), (&other, "cluster.app.ratelimit.error")]
        {
            let config = with_transport_socket(&authority, own);
            let Some(envoy) = EnvoyProcess::start_with(&config, weir.grpc).await else { return };
            let answer = envoy.client().await.get("/hello", &[]).await;
            assert_eq!(answer.status, 200, "{transport:?}: {answer:?}");
            assert_eq!(envoy.stat(counter).await, 1, "{transport:?} {counter}: {}", envoy.log());
        }
    }
}
