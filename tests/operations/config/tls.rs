//! `server.tls`: settings that do not go together, and files that cannot be used.

use std::path::{Path, PathBuf};

use super::{STRATEGIES, accepted, parse, refused, refused_rows};
use crate::support::certificates::Authority;
use crate::support::clients::root;
use crate::support::scratch;

fn fixture(name: &str) -> PathBuf {
    root().join("tests/certificates").join(name)
}

/// A file whose TLS has these keys.
fn with(keys: &[(&str, &Path)], more: &str) -> String {
    let keys: String = keys.iter().map(|(key, path)| format!("{key}: {}, ", path.display())).collect();
    format!("server: {{ tls: {{ {keys}{more} }} }}\n{STRATEGIES}")
}

/// The mistakes of a file, without its name and the places.
fn mistakes(text: &str) -> Vec<String> {
    let errors = parse(text).unwrap_err();
    errors.lines().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn settings_that_need_others_say_so() {
    let needs = |keys: &str| format!("server: {{ tls: {{ {keys} }} }}\n{STRATEGIES}");
    refused_rows(
        needs,
        r#"
cert_file: c, key_file: k, client_auth: required
    1:58: server.tls.client_auth: needs `client_ca_file`: without authorities no certificate of a client is valid
cert_file: c, key_file: k, client_ca_file: a
    1:61: server.tls.client_ca_file: needs `client_auth`: write `required` or `optional`; by default no client is asked
cert_file: c, key_file: k, client_crl_file: a => 1:62: server.tls.client_crl_file: needs `client_ca_file`
"#,
    );
    refused(
        &[(
            "",
            "1:16: server.tls.cert_file: is missing; a port with TLS needs a certificate and its key\n\
                 1:16: server.tls.key_file: is missing; a port with TLS needs a certificate and its key",
        )],
        needs,
    );
    let unix = format!("server: {{ listen: 'unix:w', tls: {{ cert_file: c, key_file: k }} }}\n{STRATEGIES}");
    let found = mistakes(&unix);
    let expected = "server.tls: is for ports: a Unix socket has no TLS, and file modes say who may connect";
    assert!(found.iter().any(|line| line == expected), "{found:?}");
}

/// All mistakes in one run, each with the file and what to make instead.
#[test]
fn files_that_cannot_be_used_are_refused_at_the_start() {
    let authority = Authority::create();
    let (good, other) = (authority.issue("good", &["weir"]), authority.issue("other", &["weir"]));
    let dir = scratch::dir("tls-");
    let pem = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let encrypted = scratch::file(dir.path(), "encrypted.key", pem);
    let pair = |cert: &Path, key: &Path| with(&[("cert_file", cert), ("key_file", key)], "");
    accepted(&pair(&good.cert, &good.key));
    for (cert, key, reason) in [
        (fixture("p521.pem"), &good.key, "for a key of P-521: make one of P-256"),
        (fixture("rsa8192.pem"), &good.key, "for a key of RSA with 8192 bits: make one of P-256"),
        (fixture("rsa1024.pem"), &good.key, "for a key of RSA with 1024 bits: make one of P-256"),
        (fixture("v1.pem"), &good.key, "of X.509 version 1: issue it again as version 3"),
        (fixture("sha1.pem"), &good.key, "signed with SHA-1: issue it again with SHA-256"),
        (good.cert.clone(), &other.key, "does not fit the certificate in"),
        (good.cert.clone(), &encrypted, "holds an encrypted private key: write it without a password"),
        (good.cert.clone(), &good.cert, "holds no private key in PEM"),
        (good.key.clone(), &good.key, "holds no certificate in PEM"),
    ] {
        let found = mistakes(&pair(&cert, key));
        assert!(found.len() == 1 && found[0].contains(reason), "{reason}: {found:?}");
    }
    let clients = |ca: &Path, crl: &Path| {
        let files = [
            ("cert_file", &*good.cert),
            ("key_file", &good.key),
            ("client_ca_file", ca),
            ("client_crl_file", crl),
        ];
        with(&files, "client_auth: required")
    };
    for crl in ["plain-crl.pem", "plain-crl.der"] {
        accepted(&clients(&fixture("ca.pem"), &fixture(crl)));
    }
    for (ca, crl, reason) in [
        ("ca.pem", "delta-crl.pem", "has a list (number 1) that is a delta list: give the complete one"),
        (
            "ca.pem",
            "indirect-crl.pem",
            "has a list (number 1) that is an indirect list: give one that the authority",
        ),
        ("ca.pem", "ca.pem", "holds no certificate revocation list"),
        ("p521.pem", "plain-crl.pem", "for a key of P-521: make one of P-256"),
        ("v1.pem", "plain-crl.pem", "of X.509 version 1"),
    ] {
        let found = mistakes(&clients(&fixture(ca), &fixture(crl)));
        assert!(found.len() == 1 && found[0].contains(reason), "{reason}: {found:?}");
    }
    let leaf = mistakes(&clients(&good.cert, &fixture("plain-crl.pem")));
    assert!(leaf[0].contains("that is not of an authority"), "{leaf:?}");
    // Three at once, and a missing file beside them.
    let files = [("cert_file", &*good.cert), ("key_file", &other.key)];
    let ca = fixture("p521.pem");
    let crl = fixture("delta-crl.pem");
    let files = [&files[..], &[("client_ca_file", &*ca), ("client_crl_file", &*crl)]].concat();
    assert_eq!(mistakes(&with(&files, "client_auth: required")).len(), 2);
    let missing = mistakes(&pair(&dir.path().join("nothing.pem"), &good.key));
    assert!(missing[0].contains("cannot be read"), "{missing:?}");
}
