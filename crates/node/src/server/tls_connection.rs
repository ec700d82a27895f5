//! The handshake of a connection over TLS, on its worker.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use weir_grpc::{Peer, PeerAddress};

use crate::tls::{ClientCertificate, HandshakeShare, HandshakeSlot, TlsConnection, TlsPort};

#[derive(Clone)]
pub(super) struct TlsWorker {
    port: Arc<TlsPort>,
    share: Arc<HandshakeShare>,
}

pub(super) struct SecuredConnection {
    pub(super) stream: TlsStream<TcpStream>,
    pub(super) peer: Arc<Peer>,
    certificate: Option<Arc<ClientCertificate>>,
}

impl TlsWorker {
    /// Creates it with the worker's own share of time for handshakes.
    pub(super) fn new(port: Arc<TlsPort>) -> Self {
        Self { port, share: HandshakeShare::new() }
    }

    /// Returns the place of a connection's handshake, unless the handshake is over before it begins.
    pub(super) fn begin(
        &self,
        socket: &std::net::TcpStream,
        peer: &Peer,
        slot: Option<HandshakeSlot>,
    ) -> Option<HandshakeSlot> {
        let slot = slot.unwrap_or_else(|| self.port.begin(address(peer)));
        (!self.port.is_over(socket, &slot)).then_some(slot)
    }

    pub(super) async fn handshake(
        &self,
        socket: TcpStream,
        peer: Peer,
        slot: HandshakeSlot,
    ) -> Option<SecuredConnection> {
        let handshake = self.port.accept(socket, address(&peer), slot, &self.share);
        let TlsConnection { stream, certificate } = handshake.await?;
        let peer = match &certificate {
            Some(certificate) => peer.with_certificate(Arc::clone(certificate.shared())),
            None => peer,
        };
        Some(SecuredConnection { stream, peer: Arc::new(peer), certificate })
    }
}

fn address(peer: &Peer) -> Option<SocketAddr> {
    match peer.address() {
        PeerAddress::Tcp(address) => Some(address),
        PeerAddress::Unix { .. } | PeerAddress::Unknown => None,
    }
}

impl SecuredConnection {
    /// Returns what asks the connection to end once its client's certificate is no longer valid.
    pub(super) fn guard(&self) -> impl Future<Output = Infallible> + use<> {
        let (peer, certificate) = (Arc::clone(&self.peer), self.certificate.clone());
        async move {
            let Some(certificate) = certificate else { return pending().await };
            let reason = certificate.invalid().await;
            tracing::debug!(peer = %peer.address(), reason, "a connection ends");
            peer.disconnect();
            pending().await
        }
    }
}
