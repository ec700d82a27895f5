//! Resumed sessions.

use super::*;
use weir_testing::eventually;

/// Connects until the session of an earlier connection is resumed, and reads what brings the next ticket.
fn resume(address: SocketAddr, config: &Arc<rustls::ClientConfig>) -> Option<HandshakeKind> {
    let mut raw = Raw::connect(address, Arc::clone(config)).ok()?;
    // Tickets come behind the handshake, and a certificate that is refused is noticed only here.
    (raw.ask(PREFACE).ok()? > 0).then(|| raw.kind())?
}

/// All workers of a port know a ticket, and nothing is sent before the handshake is finished.
#[test]
fn a_session_is_resumed_on_any_worker_of_its_port() {
    let authority = Authority::create();
    let client = authority.issue("client", &["client"]);
    for transport in TRANSPORTS {
        let server = serve(transport, mutual(&authority, ClientAuth::Required));
        let config = client_files(&authority, Some(&client));
        assert_eq!(resume(server.grpc, &config), Some(HandshakeKind::Full), "{transport:?}");
        for _ in 0..6 {
            assert_eq!(resume(server.grpc, &config), Some(HandshakeKind::Resumed), "{transport:?}");
        }
        assert_eq!((handshakes(&server, "done"), handshakes(&server, "resumed")), (1.0, 6.0));
        let mut early = (*config).clone();
        early.enable_early_data = true;
        let mut tls = ClientConnection::new(Arc::new(early), ServerName::try_from(NAME).unwrap()).unwrap();
        assert!(tls.early_data().is_none());
    }
}

#[test]
fn a_ticket_of_one_port_is_worth_nothing_at_another() {
    let authority = Authority::create();
    let client = authority.issue("client", &["client"]);
    let files = mutual(&authority, ClientAuth::Required);
    let server = ServerConfig { tls: Some(files.clone()), admin_tls: Some(files), ..config().server };
    let server = Server::start(Config { server, ..config() });
    let config = client_files(&authority, Some(&client));
    assert_eq!(resume(server.grpc, &config), Some(HandshakeKind::Full));
    let mut raw = Raw::connect(server.admin, Arc::clone(&config)).unwrap();
    assert_eq!(raw.kind(), Some(HandshakeKind::Full));
    assert!(raw.ask(b"GET /livez HTTP/1.1\r\nhost: weir\r\n\r\n").unwrap() > 0);
    let raw = Raw::connect(server.grpc, config).unwrap();
    assert_eq!(raw.kind(), Some(HandshakeKind::Full));
}

/// The library does not verify the certificate of a resumed session: a revoked one would be served for hours.
#[test]
fn a_ticket_of_a_revoked_certificate_is_refused() {
    let authority = Authority::create();
    let client = authority.issue("client", &["client"]);
    let server = serve(TransportKind::Fast, revoking(&authority, authority.revoke(&[])));
    let config = client_files(&authority, Some(&client));
    assert_eq!(resume(server.grpc, &config), Some(HandshakeKind::Full));
    authority.revoke(&[client.serial]);
    eventually(SOON, "the list is read", || metric(&server, "weir_tls_loads_total{result=\"done\"}") == 1.0);
    assert_eq!(resume(server.grpc, &config), None);
}

#[test]
fn a_ticket_of_an_expired_certificate_is_refused() {
    let authority = Authority::create();
    let client = authority.issue_for("client", &["client"], 3);
    let server = serve(TransportKind::Fast, mutual(&authority, ClientAuth::Required));
    let config = client_files(&authority, Some(&client));
    let mut raw = Raw::connect(server.grpc, Arc::clone(&config)).unwrap();
    assert!(raw.ask(PREFACE).unwrap() > 0);
    // Its connection ends when it does.
    let _ = Stream::new(&mut raw.tls, &mut raw.socket).read_to_end(&mut Vec::new());
    assert_eq!(resume(server.grpc, &config), None);
    eventually(SOON, "it is counted", || handshakes(&server, "refused") == 1.0);
}
