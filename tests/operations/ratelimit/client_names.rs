//! `GRPC_CLIENT_TLS_SAN`: the name that certificates of clients must have.

use super::Ratelimit;
use crate::support::certificates::{Authority, Issued};
use crate::support::command::{text, weir_command};

/// What `weir allow --envoy` prints with this certificate.
fn asks(started: &Ratelimit, authority: &Authority, client: &Issued) -> (Option<i32>, String) {
    let server = format!("https://{}", started.at(8081));
    let files =
        [authority.ca_file(), client.cert.clone(), client.key.clone()].map(|path| path.display().to_string());
    let [ca, cert, key] = &files;
    let ended = weir_command(&[
        "allow",
        "--envoy",
        "d",
        "k=v",
        "--server",
        &server,
        "--tls-ca",
        ca,
        "--tls-cert",
        cert,
        "--tls-key",
        key,
        "--tls-server-name",
        "weir.test",
    ])
    .output()
    .unwrap();
    (ended.status.code(), text(&ended.stdout) + &text(&ended.stderr))
}

#[test]
fn only_clients_with_the_name_are_served() {
    let authority = Authority::create();
    let server = authority.issue("server", &["weir.test"]);
    let show = |path: &std::path::Path| path.display().to_string();
    let (cert, key, ca) = (show(&server.cert), show(&server.key), show(&authority.ca_file()));
    let started = Ratelimit::start(&[
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", &cert),
        ("GRPC_SERVER_TLS_KEY", &key),
        ("GRPC_CLIENT_TLS_CACERT", &ca),
        ("GRPC_CLIENT_TLS_SAN", "envoy.gateway-system"),
    ]);
    // One label for `*`, although it is followed by one label only.
    let named = authority.issue("named", &["*.gateway-system"]);
    let (code, said) = asks(&started, &authority, &named);
    assert_eq!(code, Some(0), "{said}");
    for (file, name) in [("other", "envoy.other"), ("deep", "a.envoy.gateway-system")] {
        let (code, said) = asks(&started, &authority, &authority.issue(file, &[name]));
        assert_ne!(code, Some(0), "{name}: {said}");
    }
}
