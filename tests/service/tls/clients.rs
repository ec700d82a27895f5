//! Clients that are served, and clients that are not.

use super::*;
use weir_testing::eventually;

#[tokio::test]
async fn clients_are_served_over_tls() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let server = serve(transport, tls(&authority));
        assert!(is_served(&server, &authority, None).await, "{transport:?}");
        // A certificate that nobody asks for changes nothing.
        assert!(is_served(&server, &authority, Some(&authority.issue("client", &["client"]))).await);
        assert_eq!(handshakes(&server, "done"), 2.0);
    }
}

#[tokio::test]
async fn a_required_certificate_must_be_of_the_authority() {
    let (authority, foreign) = (Authority::create(), Authority::named("somebody else"));
    let good = authority.issue("client", &["client"]);
    let expired = authority.issue_until("expired", &["client"], 2001);
    let bad = foreign.issue("client", &["client"]);
    for transport in TRANSPORTS {
        let server = serve(transport, mutual(&authority, ClientAuth::Required));
        assert!(is_served(&server, &authority, Some(&good)).await, "{transport:?}");
        for client in [None, Some(&expired), Some(&bad)] {
            assert!(!is_served(&server, &authority, client).await, "{transport:?}");
        }
        eventually(SOON, "refusals are counted", || handshakes(&server, "refused") >= 3.0);
    }
}

/// Nobody falls back to being anonymous with a certificate that is not valid.
#[tokio::test]
async fn an_optional_certificate_must_be_valid_too() {
    let (authority, foreign) = (Authority::create(), Authority::named("somebody else"));
    for transport in TRANSPORTS {
        let server = serve(transport, mutual(&authority, ClientAuth::Optional));
        let mut anonymous = connect(&server, &authority, None).await.unwrap();
        let refused = anonymous.should_allow(ask("burst/x", "a")).await.unwrap_err();
        assert!(
            matches!(refused, ClientError::Refused { code: "UNAUTHENTICATED", .. }),
            "{transport:?}: {refused}"
        );
        assert!(is_served(&server, &authority, Some(&authority.issue("client", &["client"]))).await);
        assert!(!is_served(&server, &authority, Some(&foreign.issue("client", &["client"]))).await);
    }
}

#[test]
fn http_2_is_offered_and_needs_no_question() {
    let authority = Authority::create();
    let server = serve(TransportKind::Fast, tls(&authority));
    let with = |protocols: &[&[u8]]| {
        let mut config = (*client_files(&authority, None)).clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Raw::connect(server.grpc, Arc::new(config))
    };
    for (protocols, chosen) in [(&[&b"h2"[..], b"http/1.1"][..], Some(&b"h2"[..])), (&[], None)] {
        let mut raw = with(protocols).unwrap();
        assert_eq!(raw.tls.alpn_protocol(), chosen);
        assert!(raw.ask(PREFACE).unwrap() > 0);
    }
    assert!(with(&[b"http/1.1"]).is_err());
}

#[test]
fn the_oldest_version_is_a_setting() {
    let authority = Authority::create();
    let old = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        let pem = std::fs::read(authority.ca_file()).unwrap();
        use rustls::pki_types::pem::PemObject as _;
        roots.add(rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    };
    let default = serve(TransportKind::Fast, tls(&authority));
    assert!(Raw::connect(default.grpc, old()).unwrap().ask(PREFACE).unwrap() > 0);
    let new = serve(TransportKind::Fast, TlsConfig { min_version: TlsVersion::V13, ..tls(&authority) });
    assert!(Raw::connect(new.grpc, old()).is_err());
    assert!(Raw::connect(new.grpc, client_files(&authority, None)).is_ok());
}

/// The connection is closed at once, not after a timeout.
#[test]
fn a_client_in_plain_text_is_disconnected() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let server = serve(transport, tls(&authority));
        let mut socket = TcpStream::connect(server.grpc).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        socket.write_all(PREFACE).unwrap();
        // What was not read by then makes the kernel reset the connection.
        assert!(matches!(socket.read(&mut [0; 9]), Ok(0) | Err(_)), "{transport:?}");
        eventually(SOON, "it is counted", || handshakes(&server, "plain_text") == 1.0);
    }
}

/// The connection ends by itself when the certificate of its client does.
#[tokio::test]
async fn a_connection_ends_with_its_clients_certificate() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let server = serve(transport, mutual(&authority, ClientAuth::Required));
        let short = authority.issue_for("short", &["client"], 3);
        let raw = Raw::connect(server.grpc, client_files(&authority, Some(&short)));
        let mut raw = raw.unwrap();
        assert!(raw.ask(PREFACE).unwrap() > 0, "{transport:?}");
        let mut rest = Vec::new();
        let _ = Stream::new(&mut raw.tls, &mut raw.socket).read_to_end(&mut rest);
        let goaway = rest.windows(9).any(|frame| frame[3] == 7 && frame[5..] == [0, 0, 0, 0]);
        assert!(goaway, "{transport:?}: {rest:?}");
        assert!(!is_served(&server, &authority, Some(&short)).await);
    }
}

/// The admin port in the same form. It speaks HTTP/1.1.
#[test]
fn the_admin_port_has_tls_in_the_same_form() {
    let authority = Authority::create();
    let client = authority.issue("client", &["client"]);
    let admin_tls = Some(mutual(&authority, ClientAuth::Required));
    let server = ServerConfig { admin_tls, ..config().server };
    let server = Server::start(Config { server, ..config() });
    let get = |issued: Option<&Issued>| {
        let mut raw = Raw::connect(server.admin, client_files(&authority, issued))?;
        raw.ask(b"GET /livez HTTP/1.1\r\nhost: weir\r\n\r\n")
    };
    assert!(get(Some(&client)).unwrap() > 0);
    assert!(get(None).is_err());
    // Plain text is for the other port.
    let mut socket = TcpStream::connect(server.admin).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket.write_all(b"GET /livez HTTP/1.1\r\nhost: weir\r\n\r\n").unwrap();
    assert!(matches!(socket.read(&mut [0; 9]), Ok(0) | Err(_)));
}
