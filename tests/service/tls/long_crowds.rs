//! Many connections with many certificates while the revocation list changes: those of revoked certificates end, all
//! others are served on, and each certificate is judged once.

use std::time::{Duration, Instant};

use super::*;
use crate::support::grpc::framed;
use crate::transports::client::{Call, Client as HttpClient};
use tokio::net::TcpStream as AsyncStream;
use tokio_rustls::TlsConnector;
use weir_testing::{eventually, eventually_async};

const CERTIFICATES: usize = 100;
const CONNECTIONS: usize = 2_000;

/// Changes of the list, each of which revokes some certificates more.
const CHANGES: usize = 8;
const REVOKED_EACH: usize = 5;

/// The longest time from a change of files to the end of a connection.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// A certificate, and the connections that have shown it.
struct Crowd {
    issued: Issued,
    connections: Vec<HttpClient>,
}

impl Crowd {
    /// Opens connections one after the other: later ones resume the session of the first.
    async fn connect(authority: &Authority, to: SocketAddr, number: usize) -> Self {
        let issued = authority.issue(&format!("client-{number}"), &["client"]);
        let connector = TlsConnector::from(client_files(authority, Some(&issued)));
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS / CERTIFICATES {
            let socket = AsyncStream::connect(to).await.unwrap();
            let stream = connector.connect(ServerName::try_from(NAME).unwrap(), socket).await.unwrap();
            connections.push(HttpClient::connect(stream).await);
        }
        let mut crowd = Self { issued, connections };
        assert_eq!(crowd.answers().await, crowd.connections.len());
        crowd
    }

    /// The number of connections on which a call is answered.
    async fn answers(&mut self) -> usize {
        use prost::Message as _;
        let message = framed(0, &ask("burst/x", "a").encode_to_vec());
        let call = Call::new("/weir.v1.RateLimitService/ShouldAllow", message);
        let mut answers = 0;
        for client in &mut self.connections {
            answers += usize::from(client.call(&call).await.code == Some(0));
        }
        answers
    }
}

#[tokio::test]
async fn connections_of_many_certificates_while_the_list_changes() {
    weir_node::server::raise_open_files();
    for transport in TRANSPORTS {
        let authority = Authority::create();
        let server = serve(transport, revoking(&authority, authority.revoke(&[])));
        let mut crowds = Vec::new();
        for number in 0..CERTIFICATES {
            crowds.push(Crowd::connect(&authority, server.grpc, number).await);
        }
        let (mut revoked, mut slowest) = (Vec::new(), Duration::ZERO);
        for change in 1..=CHANGES {
            let mut end: Vec<Crowd> = crowds.drain(..REVOKED_EACH).collect();
            revoked.extend(end.iter().map(|crowd| crowd.issued.serial));
            authority.revoke(&revoked);
            let loads = || metric(&server, "weir_tls_loads_total{result=\"done\"}");
            eventually(SOON, "the list is read", || loads() >= change as f64);
            let read = Instant::now();
            for crowd in &mut end {
                let have_ended = async || crowd.answers().await == 0;
                eventually_async(SOON, "connections of a revoked certificate end", have_ended).await;
            }
            slowest = slowest.max(read.elapsed());
            // Everybody else did not notice, and new connections of theirs are served.
            for crowd in &mut crowds {
                assert_eq!(crowd.answers().await, crowd.connections.len(), "{transport:?}, change {change}");
            }
            assert!(is_served(&server, &authority, Some(&crowds[0].issued)).await, "{transport:?}");
            assert!(!is_served(&server, &authority, Some(&end[0].issued)).await, "{transport:?}");
        }
        println!(
            "{transport:?}: the last connections of {REVOKED_EACH} certificates ended after {slowest:?} at most"
        );
        assert!(slowest < ENDS_WITHIN, "{transport:?}: {slowest:?}");
    }
}
