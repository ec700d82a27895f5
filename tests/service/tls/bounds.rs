//! Clients that do not finish their handshakes.

use super::*;
use weir_config::ServerLimits;
use weir_testing::eventually;
use weir_units::Micros;

fn bounded(transport: TransportKind, authority: &Authority, limits: ServerLimits) -> Server {
    let server = ServerConfig { transport, limits, tls: Some(tls(authority)), ..config().server };
    Server::ready(Config { server, ..config() })
}

/// A connection from another address of this machine.
fn from(address: &str, to: SocketAddr) -> TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own: SocketAddr = format!("{address}:0").parse().unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket
}

/// Silent connections fill the places of their own address, and keep nobody out.
#[tokio::test]
async fn silent_connections_make_room() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let limits = ServerLimits { max_handshakes: 4, ..ServerLimits::default() };
        let server = bounded(transport, &authority, limits);
        let other = from("127.0.0.9", server.grpc);
        let mut silent: Vec<TcpStream> = (0..12).map(|_| from("127.0.0.2", server.grpc)).collect();
        eventually(SOON, "most of them are closed", || handshakes(&server, "evicted") >= 9.0);
        assert!(is_served(&server, &authority, None).await, "{transport:?}");
        // Not the lonely one of another address.
        other.set_nonblocking(true).unwrap();
        let still_open = other.peek(&mut [0]).unwrap_err();
        assert_eq!(still_open.kind(), std::io::ErrorKind::WouldBlock, "{transport:?}");
        assert!(matches!(silent[0].read(&mut [0]), Ok(0) | Err(_)), "{transport:?}");
    }
}

#[test]
fn a_handshake_ends_after_its_timeout() {
    let authority = Authority::create();
    for transport in TRANSPORTS {
        let tls_handshake_timeout = Micros::from_millis(200);
        let limits = ServerLimits { tls_handshake_timeout, ..ServerLimits::default() };
        let server = bounded(transport, &authority, limits);
        for begun in [&b""[..], b"\x16\x03\x01"] {
            let mut socket = from("127.0.0.2", server.grpc);
            socket.write_all(begun).unwrap();
            assert!(matches!(socket.read(&mut [0]), Ok(0) | Err(_)), "{transport:?}");
        }
        eventually(SOON, "both are counted", || handshakes(&server, "timed_out") == 2.0);
        // A handshake that is over has another timeout: that of HTTP/2.
        assert!(Raw::connect(server.grpc, client_files(&authority, None)).unwrap().ask(PREFACE).unwrap() > 0);
    }
}

/// Bytes that are no handshake end the connection, whatever they are.
#[test]
fn nonsense_ends_its_connection() {
    let authority = Authority::create();
    let server = serve(TransportKind::Fast, tls(&authority));
    let mut seed = 1_u64;
    for length in 1..200 {
        let mut bytes = vec![0x16, 3, 1, 0, length];
        for _ in 0..length {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.push((seed >> 56) as u8);
        }
        let mut socket = from("127.0.0.2", server.grpc);
        socket.write_all(&bytes).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    }
    let failed = || handshakes(&server, "failed") + handshakes(&server, "closed");
    eventually(SOON, "all have failed", || failed() == 199.0);
    assert!(Raw::connect(server.grpc, client_files(&authority, None)).is_ok());
}
