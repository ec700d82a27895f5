//! One handshake, from the first byte to the verified certificate.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::handshakes::HandshakeSlot;
use super::linger::linger;
use super::peers::ClientCertificate;
use super::port::{PortFiles, TlsPort};
use super::share::HandshakeShare;
use crate::telemetry::HandshakeResult;

/// The first byte of a TLS handshake: the record type.
const HANDSHAKE: u8 = 0x16;

/// A connection after its handshake.
pub struct TlsConnection {
    /// The bytes inside.
    pub stream: TlsStream<TcpStream>,
    /// The client's certificate, if it has one.
    pub certificate: Option<Arc<ClientCertificate>>,
}

/// Reason that a handshake did not succeed, and the socket of a client that was told.
struct HandshakeFailure {
    result: HandshakeResult,
    reason: String,
    socket: Option<TcpStream>,
}

impl TlsPort {
    /// Gives the handshake of an accepted connection its place. At the bound, another one loses its own.
    pub(crate) fn begin(&self, peer: Option<SocketAddr>) -> HandshakeSlot {
        self.shared.handshakes.begin(peer.map(|peer| peer.ip()))
    }

    /// Returns true if no handshake needs to be tried: its place was taken while it waited for its worker, or its
    /// client has gone. It costs a fraction of what registering the socket does.
    pub(crate) fn is_over(&self, socket: &impl AsFd, slot: &HandshakeSlot) -> bool {
        let result = match slot.is_evicted() {
            true => HandshakeResult::Evicted,
            false if is_closed_by_client(socket) => HandshakeResult::Closed,
            false => return false,
        };
        self.shared.metrics.handshake(result);
        true
    }

    /// Performs the handshake. The connection ends if it fails, takes too long, or must make room for another one.
    pub(crate) async fn accept(
        &self,
        socket: TcpStream,
        peer: Option<SocketAddr>,
        slot: HandshakeSlot,
        share: &HandshakeShare,
    ) -> Option<TlsConnection> {
        let handshake = timeout(self.shared.timeout, self.handshake(socket, &slot, share));
        let ended = tokio::select! {
            biased;
            () = slot.evicted() => Err(HandshakeFailure::new(HandshakeResult::Evicted, "max_handshakes is reached")),
            ended = handshake => ended.unwrap_or_else(|_| {
                Err(HandshakeFailure::new(HandshakeResult::TimedOut, "it took longer than tls_handshake_timeout"))
            }),
        };
        let HandshakeFailure { result, reason, socket } = match ended {
            Ok((connection, result)) => {
                self.shared.metrics.handshake(result);
                return Some(connection);
            }
            Err(failure) => failure,
        };
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        tracing::debug!(peer, reason, "TLS handshake failed");
        self.shared.metrics.failed(result, &peer, &reason);
        if let Some(socket) = socket {
            tokio::select! {
                biased;
                () = slot.evicted() => {}
                () = linger(socket) => {}
            }
        }
        None
    }

    async fn handshake(
        &self,
        socket: TcpStream,
        slot: &HandshakeSlot,
        share: &HandshakeShare,
    ) -> Result<(TlsConnection, HandshakeResult), HandshakeFailure> {
        // Until the client has sent something, the connection holds nothing of TLS.
        match socket.peek(&mut [0]).await {
            Ok(0) => return Err(HandshakeFailure::new(HandshakeResult::Closed, "the client has gone")),
            Ok(_) => slot.has_sent(),
            Err(error) => return Err(HandshakeFailure::new(HandshakeResult::Closed, error.to_string())),
        }
        let mut first = [0];
        if socket.peek(&mut first).await.is_ok() && first != [HANDSHAKE] {
            return Err(HandshakeFailure::new(HandshakeResult::PlainText, "the client does not speak TLS"));
        }
        let files = self.current();
        let handshake = begin(socket, TlsAcceptor::from(Arc::clone(&files.server)));
        let mut stream = share.drive(slot.of_source, handshake).await?;
        match self.admit(&stream, &files) {
            Ok((certificate, result)) => Ok((TlsConnection { stream, certificate }, result)),
            Err(reason) => {
                // TLS has no alert for it any more but the end.
                let _ = stream.shutdown().await;
                let (socket, _) = stream.into_inner();
                let result = HandshakeResult::Refused;
                Err(HandshakeFailure { result, reason, socket: Some(socket) })
            }
        }
    }

    /// Judges the client's certificate by the current files, unless the handshake has done that: the library does not
    /// verify the certificate of a resumed session again, and files may have changed meanwhile.
    fn admit(
        &self,
        stream: &TlsStream<TcpStream>,
        files: &PortFiles,
    ) -> Result<(Option<Arc<ClientCertificate>>, HandshakeResult), String> {
        let (_, session) = stream.get_ref();
        let is_resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
        let result = if is_resumed { HandshakeResult::Resumed } else { HandshakeResult::Done };
        let chain = session.peer_certificates().unwrap_or_default();
        // It is known from here on, so a reload that begins now judges it.
        let Some(certificate) = self.certificates.share(chain, &self.clock) else {
            return Ok((None, result));
        };
        let now = self.current();
        if let Some(clients) = &now.clients {
            let used = files.clients.as_ref().map(|clients| clients.revision);
            if !is_resumed && used == Some(clients.revision) {
                certificate.set_verified(clients.revision);
            }
            if certificate.verified() != clients.revision {
                let verified = clients.verify(chain, &self.clock);
                verified.map_err(|error| error.to_string())?;
                certificate.set_verified(clients.revision);
            }
        }
        if certificate.has_expired() {
            return Err("the client's certificate has expired".to_owned());
        }
        Ok((Some(certificate), result))
    }
}

fn is_closed_by_client(socket: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    poll(&mut polled, Some(&at_once)).is_ok() && polled.iter().any(|one| one.revents().intersects(gone))
}

/// Performs the handshake, unless the client has gone meanwhile: who throws away handshakes gets no cryptography.
async fn begin(socket: TcpStream, acceptor: TlsAcceptor) -> Result<TlsStream<TcpStream>, HandshakeFailure> {
    let gone = |reason: String| HandshakeFailure::new(HandshakeResult::Closed, reason);
    let ready = socket.ready(Interest::READABLE).await.map_err(|error| gone(error.to_string()))?;
    if ready.is_read_closed() {
        return Err(gone(io::Error::from(io::ErrorKind::ConnectionAborted).to_string()));
    }
    acceptor
        .accept(socket)
        .into_fallible()
        .await
        .map_err(|(error, socket)| HandshakeFailure::from_io(&error, socket))
}

impl HandshakeFailure {
    fn new(result: HandshakeResult, reason: impl Into<String>) -> Self {
        Self { result, reason: reason.into(), socket: None }
    }

    /// The failure of a handshake whose alert is sent.
    fn from_io(error: &io::Error, socket: TcpStream) -> Self {
        let library = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let result = match library {
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
                HandshakeResult::Refused
            }
            Some(_) => HandshakeResult::Failed,
            None => HandshakeResult::Closed,
        };
        Self { result, reason: error.to_string(), socket: library.map(|_| socket) }
    }
}
