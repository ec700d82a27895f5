//! The kinds of keys that a port can have, in each form of their files.

use super::*;
use weir_testing::clients::root;

fn fixture(name: &str) -> PathBuf {
    root().join("tests/certificates").join(name)
}

/// A client that trusts this certificate alone.
fn trusting(cert: PathBuf) -> Arc<rustls::ClientConfig> {
    weir_store::tls::load(&ClientFiles { ca_file: Some(cert), identity: None }).unwrap()
}

#[test]
fn every_kind_of_key_is_served() {
    for (name, form) in [
        ("rsa2048", "-----BEGIN RSA PRIVATE KEY"),
        ("rsa4096", "-----BEGIN PRIVATE KEY"),
        ("p256", "-----BEGIN EC PRIVATE KEY"),
        ("p384", "-----BEGIN PRIVATE KEY"),
        ("ed25519", "-----BEGIN PRIVATE KEY"),
    ] {
        let cert_file = fixture(&format!("{name}.pem"));
        let key_file = fixture(&format!("{name}.key"));
        assert!(std::fs::read_to_string(&key_file).unwrap().starts_with(form), "{name}");
        let tls = TlsConfig { cert_file: cert_file.clone(), key_file, ..TlsConfig::default() };
        let server = serve(TransportKind::Fast, tls);
        let mut raw =
            Raw::connect(server.grpc, trusting(cert_file)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(raw.ask(PREFACE).unwrap() > 0, "{name}");
    }
}
