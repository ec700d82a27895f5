//! TLS of the gRPC port: any certificate of the authority is served, and the HTTP ports stay open.

use weir_config::{ClientFiles, Identity};
use weir_load::client::{Client, ClientError};
use weir_load::{ClientTls, ServerAccess};

use super::{Ratelimit, request};
use crate::support::SOON;
use crate::support::certificates::{Authority, Issued};

async fn ask(started: &Ratelimit, authority: &Authority, issued: Option<&Issued>) -> Result<(), ClientError> {
    let identity =
        issued.map(|Issued { cert, key, .. }| Identity { cert_file: cert.clone(), key_file: key.clone() });
    let files = ClientFiles { ca_file: Some(authority.ca_file()), identity };
    let tls = ClientTls::new(&weir_store::tls::load(&files).unwrap(), "weir.test").unwrap();
    let access = ServerAccess { tls: Some(tls), token: None };
    let mut client = Client::connect_with(&format!("https://{}", started.at(8081)), &access, SOON).await?;
    client.should_rate_limit(request("v")).await.map(drop)
}

/// The reference reads no names of certificates, so one without a usable name is served too.
#[tokio::test]
async fn a_verified_certificate_needs_no_name_and_the_pages_need_none() {
    let authority = Authority::create();
    let server = authority.issue("server", &["weir.test"]);
    let files = [&server.cert, &server.key, &authority.ca_file()].map(|path| path.display().to_string());
    let [cert, key, ca] = files.each_ref().map(String::as_str);
    let started = Ratelimit::start(&[
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", cert),
        ("GRPC_SERVER_TLS_KEY", key),
        ("GRPC_CLIENT_TLS_CACERT", ca),
    ]);
    let nameless = authority.issue("nameless", &["192.0.2.1"]);
    let named = authority.issue("named", &["spiffe://prod/envoy"]);
    for issued in [&nameless, &named] {
        ask(&started, &authority, Some(issued)).await.unwrap();
    }
    assert!(ask(&started, &authority, None).await.is_err(), "a certificate is required");
    let other = Authority::named("somebody else");
    let foreign = other.issue("foreign", &["192.0.2.1"]);
    assert!(ask(&started, &authority, Some(&foreign)).await.is_err());
    for (port, path) in [(8080, "/healthcheck"), (6070, "/rlconfig"), (6070, "/stats"), (6070, "/metrics")] {
        assert_eq!(started.get(port, path).unwrap().0, 200, "{port} {path}");
    }
    let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"json"}]}]}"#;
    assert_eq!(started.post("/json", body).0, 200);
}
