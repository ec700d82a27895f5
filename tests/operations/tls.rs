//! TLS as operators and users of the commands meet it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use crate::support::certificates::{Authority, Issued};
use crate::support::command::{Serve, text, weir, weir_command};
use crate::support::{SOON, scratch};

const STRATEGIES: &str = "strategies: { a: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 5/s, burst: 5 } }] } }\n\
     resources: [{ match: x, strategy: a }]\n";

struct Deployed {
    authority: Authority,
    client: Issued,
    dir: tempfile::TempDir,
}

impl Deployed {
    fn new() -> Self {
        let authority = Authority::create();
        let client = authority.issue("client", &["client"]);
        Self { authority, client, dir: scratch::dir("tls-") }
    }

    /// A server that requires client certificates.
    fn serve(&self) -> Serve {
        let server = self.authority.issue("server", &["weir.test"]);
        let show = |path: &Path| path.display().to_string();
        let (cert, key, ca) = (show(&server.cert), show(&server.key), show(&self.authority.ca_file()));
        let tls = format!("cert_file: {cert}, key_file: {key}, client_ca_file: {ca}, client_auth: required");
        let file = scratch::file(
            self.dir.path(),
            "weir.yaml",
            format!("server: {{ tls: {{ {tls} }} }}\n{STRATEGIES}"),
        );
        Serve::start(&["--config", &show(&file)])
    }

    /// The options of a client.
    fn options(&self, server: &Serve) -> Vec<String> {
        let show = |path: &Path| path.display().to_string();
        [
            ("--server", server.server.replace("http:", "https:")),
            ("--tls-ca", show(&self.authority.ca_file())),
            ("--tls-cert", show(&self.client.cert)),
            ("--tls-key", show(&self.client.key)),
            ("--tls-server-name", "weir.test".to_owned()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }
}

#[test]
fn every_command_speaks_tls() {
    let deployed = Deployed::new();
    let server = deployed.serve();
    let options = deployed.options(&server);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let allowed = weir(&[&["allow", "x", "me"], &options[..]].concat());
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
    let load = ["load", "--resource", "x", "--requests", "200", "--warm-up", "0s", "--quiet", "--mode"];
    for mode in ["unary", "batch", "stream"] {
        let report = weir(&[&load[..], &[mode], &options].concat());
        assert!(report.status.success(), "{mode}: {}{}", text(&report.stdout), text(&report.stderr));
    }
    let top = weir(&[&["top", "--once"], &options[..]].concat());
    assert!(top.status.success(), "{}", text(&top.stderr));
    // The same by variables.
    let mut by_variables = weir_command(&["allow", "x", "somebody"]);
    for pair in options.chunks(2) {
        let name = pair[0].trim_start_matches('-').to_uppercase().replace('-', "_");
        by_variables.env(format!("WEIR_{name}"), pair[1]);
    }
    let allowed = by_variables.output().unwrap();
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
    // Without a certificate, with the wrong name, in plain text.
    for without in [&options[..4], &options[..8]] {
        assert_eq!(weir(&[&["allow", "x", "me"], without].concat()).status.code(), Some(2));
    }
    let plain = weir(&["allow", "x", "me", "--server", &server.server]);
    assert_eq!(plain.status.code(), Some(2));
}

/// Once a minute, however many there are.
#[test]
fn one_line_says_that_clients_speak_plain_text() {
    let deployed = Deployed::new();
    let server = deployed.serve();
    for _ in 0..5 {
        let mut socket = TcpStream::connect(server.server.trim_start_matches("http://")).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        assert!(matches!(socket.read(&mut [0; 9]), Ok(0) | Err(_)));
    }
    let (_, log) = server.stop("TERM");
    assert_eq!(log.matches("the client speaks plain text, and this port expects TLS").count(), 1, "{log}");
}

/// Once a minute, with the peer and the reason, however many there are.
#[test]
fn one_line_names_a_client_without_a_certificate() {
    let deployed = Deployed::new();
    let server = deployed.serve();
    let options = deployed.options(&server);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    for _ in 0..5 {
        let without = weir(&[&["allow", "x", "me"], &options[..4], &options[8..]].concat());
        assert_eq!(without.status.code(), Some(2));
    }
    let (_, log) = server.stop("TERM");
    let mut lines =
        log.lines().filter(|line| line.contains("the client's certificate is missing or invalid"));
    let line = lines.next().expect("there is a line");
    assert!(line.contains("127.0.0.1:") && line.contains("peer sent no certificates"), "{line}");
    assert_eq!(lines.next(), None);
}

/// Authorities whose certificates would all be refused are named.
#[test]
fn authorities_without_a_revocation_list_are_named() {
    let deployed = Deployed::new();
    let other = Authority::named("without a list");
    let both =
        [deployed.authority.ca_file(), other.ca_file()].map(|path| std::fs::read(path).unwrap()).concat();
    let ca = scratch::file(deployed.dir.path(), "both.pem", both);
    let issued = deployed.authority.issue("server", &["weir.test"]);
    let crl = deployed.authority.revoke_until(&[], 1_000_000_000);
    let show = |path: &Path| path.display().to_string();
    let text = format!(
        "server: {{ tls: {{ cert_file: {}, key_file: {}, client_ca_file: {}, client_auth: required, client_crl_file: {} }} }}\n{STRATEGIES}",
        show(&issued.cert),
        show(&issued.key),
        show(&ca),
        show(&crl)
    );
    let file = scratch::file(deployed.dir.path(), "named.yaml", text);
    let (_, log) = Serve::start(&["--config", &show(&file)]).stop("TERM");
    assert!(log.contains("the authority CN=without a list has no revocation list"), "{log}");
    assert!(!log.contains("CN=weir's tests has no revocation list"), "{log}");
    assert!(log.contains("a certificate revocation list is older than its nextUpdate"), "{log}");
}
