//! TLS of the gRPC port: any certificate of the authority is served, and the HTTP ports stay open.

use weir_config::{ClientFiles, Identity};
use weir_load::client::{Client, ClientError};
use weir_load::{ClientTls, ServerAccess};

use super::{Ratelimit, request};
use crate::support::SOON;
use crate::support::certificates::{Authority, Issued, own_authority};

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

/// Of clients, too: the same certificate is the client's and among the authorities.
#[tokio::test]
async fn a_client_whose_certificate_is_its_own_authority_is_served() {
    let authority = Authority::create();
    let server = authority.issue("server", &["weir.test"]);
    let ((_one, own), (_two, other), (_three, old)) = (
        own_authority(&["192.0.2.1"], 2096),
        own_authority(&["192.0.2.1"], 2096),
        own_authority(&["192.0.2.1"], 2001),
    );
    let trusted = std::fs::read_to_string(&own.cert).unwrap() + &std::fs::read_to_string(&old.cert).unwrap();
    let folder = crate::support::scratch::dir("own-");
    let clients = folder.path().join("clients.pem");
    std::fs::write(&clients, trusted).unwrap();
    let files = [&server.cert, &server.key, &clients].map(|path| path.display().to_string());
    let [cert, key, ca] = files.each_ref().map(String::as_str);
    let started = Ratelimit::start(&[
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", cert),
        ("GRPC_SERVER_TLS_KEY", key),
        ("GRPC_CLIENT_TLS_CACERT", ca),
    ]);
    ask(&started, &authority, Some(&own)).await.unwrap();
    for (refused, why) in [(&other, "it is not in the file"), (&old, "it has expired")] {
        assert!(ask(&started, &authority, Some(refused)).await.is_err(), "{why}");
    }
}
