//! Files that change while they serve.

use std::fs;

use super::*;
use weir_testing::certificates::replace;
use weir_testing::{eventually, eventually_some};

const DONE: &str = "weir_tls_loads_total{result=\"done\"}";
const REFUSED: &str = "weir_tls_loads_total{result=\"refused\"}";

/// The serial number of the certificate that a new connection gets.
fn served_certificate(server: &Server, authority: &Authority) -> Vec<u8> {
    let raw = Raw::connect(server.grpc, client_files(authority, None)).unwrap();
    raw.tls.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let config = tls(&authority);
        let server = serve(transport, config.clone());
        let mut client = connect(&server, &authority, None).await.unwrap();
        let old = served_certificate(&server, &authority);
        let expiry = "weir_tls_certificate_expiry_timestamp_seconds{port=\"grpc\"}";
        let expires = metric(&server, expiry);
        authority.issue_until("server", &[NAME], 2090);
        eventually(SOON, "the new one is served", || served_certificate(&server, &authority) != old);
        assert!(metric(&server, expiry) < expires);
        client.should_allow(ask("burst/x", "a")).await.unwrap();
    }
}

/// A certificate that was renewed before its key is not served.
#[tokio::test]
async fn a_pair_that_does_not_fit_keeps_the_old_one() {
    let authority = Authority::create();
    let config = tls(&authority);
    let server = serve(TransportKind::Fast, config.clone());
    let old = served_certificate(&server, &authority);
    let other = authority.issue("other", &[NAME]);
    replace(&config.cert_file, &fs::read(&other.cert).unwrap());
    eventually(SOON, "the pair is refused", || metric(&server, REFUSED) == 1.0);
    assert_eq!(served_certificate(&server, &authority), old);
    replace(&config.key_file, &fs::read(&other.key).unwrap());
    eventually(SOON, "the pair fits", || metric(&server, DONE) == 1.0);
    assert_ne!(served_certificate(&server, &authority), old);
    // A file that is gone is a mistake, too.
    fs::remove_file(&config.key_file).unwrap();
    eventually(SOON, "the missing key is refused", || metric(&server, REFUSED) == 2.0);
    assert!(is_served(&server, &authority, None).await);
}

/// One connection ends, those of other certificates go on.
#[tokio::test]
async fn revocation_ends_the_connections_of_a_certificate() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let crl = authority.revoke(&[]);
        let server = serve(transport, revoking(&authority, crl));
        let (good, bad) = (authority.issue("good", &["good"]), authority.issue("bad", &["bad"]));
        let mut stays = connect(&server, &authority, Some(&good)).await.unwrap();
        stays.should_allow(ask("burst/x", "a")).await.unwrap();
        let ends: Vec<Raw> = (0..3)
            .map(|_| {
                let mut raw = Raw::connect(server.grpc, client_files(&authority, Some(&bad))).unwrap();
                assert!(raw.ask(PREFACE).unwrap() > 0);
                raw
            })
            .collect();
        authority.revoke(&[bad.serial]);
        for mut raw in ends {
            let mut rest = Vec::new();
            let _ = Stream::new(&mut raw.tls, &mut raw.socket).read_to_end(&mut rest);
            assert!(rest.windows(9).any(|frame| frame[3] == 7), "{transport:?}: no GOAWAY in {rest:?}");
        }
        stays.should_allow(ask("burst/x", "a")).await.unwrap();
        assert!(is_served(&server, &authority, Some(&good)).await);
        assert!(!is_served(&server, &authority, Some(&bad)).await);
        assert!(metric(&server, "weir_tls_crl_next_update_timestamp_seconds{port=\"grpc\"}") > 1.7e9);
    }
}

/// Clients of an authority that is no longer trusted go, those of the new one come.
#[tokio::test]
async fn authorities_are_exchanged_while_they_serve() {
    let (old, new) = (Authority::create(), Authority::named("the next authority"));
    let config = mutual(&old, ClientAuth::Required);
    let server = serve(TransportKind::Fast, config.clone());
    let (first, second) = (old.issue("client", &["client"]), new.issue("client", &["client"]));
    let mut raw = Raw::connect(server.grpc, client_files(&old, Some(&first))).unwrap();
    assert!(raw.ask(PREFACE).unwrap() > 0);
    assert!(!is_served(&server, &old, Some(&second)).await);
    let both = [fs::read(old.ca_file()).unwrap(), fs::read(new.ca_file()).unwrap()].concat();
    replace(config.client_ca_file.as_ref().unwrap(), &both);
    eventually(SOON, "both are read", || metric(&server, DONE) == 1.0);
    let client = || client_files_of(&old, &second, &both);
    eventually_some(SOON, "the new one is served", || {
        Raw::connect(server.grpc, client()).ok()?.ask(PREFACE).ok()
    });
    replace(config.client_ca_file.as_ref().unwrap(), &fs::read(new.ca_file()).unwrap());
    let mut rest = Vec::new();
    let _ = Stream::new(&mut raw.tls, &mut raw.socket).read_to_end(&mut rest);
    assert!(rest.windows(9).any(|frame| frame[3] == 7), "no GOAWAY in {rest:?}");
}

/// The file of authorities is the one that changes: the client's copy is its own.
fn client_files_of(authority: &Authority, issued: &Issued, roots: &[u8]) -> Arc<rustls::ClientConfig> {
    let own = authority.ca_file().with_extension("copy");
    fs::write(&own, roots).unwrap();
    let identity = Identity { cert_file: issued.cert.clone(), key_file: issued.key.clone() };
    weir_store::tls::load(&ClientFiles { ca_file: Some(own), identity: Some(identity) }).unwrap()
}
