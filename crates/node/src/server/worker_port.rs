//! The connections of one port on one worker: taken over from the acceptor, secured, and served until they end.

use std::pin::pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, yield_now};
use weir_grpc::Peer;

use super::listener::Accepted;
use super::open::OpenConnection;
use super::stopping::{SHUTDOWN_TIMEOUT, stopped};
use super::tls_connection::TlsWorker;
use crate::tls::{HandshakeSlot, TlsPort};

/// Accepted connections that a worker takes over at a time, before it goes on with those that it has.
const BEGUN_AT_ONCE: usize = 16;

/// Connections that the acceptor of a port gives to a worker.
pub(super) type AcceptedConnections = mpsc::UnboundedReceiver<(Accepted, OpenConnection)>;

pub(super) trait ServeConnections {
    /// An accepted connection without its byte stream.
    type Opened: ServeStream;

    /// Returns what an accepted connection needs to be served.
    fn opened(&mut self, counted: OpenConnection, stop: watch::Receiver<()>) -> Self::Opened;
}

pub(super) trait ServeStream: Sized + Send + 'static {
    /// Serves the connection until it ends.
    fn serve<I>(self, stream: I, peer: Arc<Peer>) -> impl Future<Output = ()> + Send
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static;
}

pub(super) struct WorkerPort<P> {
    served: P,
    /// TLS of TCP connections; without it they are plain text.
    tls: Option<TlsWorker>,
    accepted: AcceptedConnections,
}

impl<P: ServeConnections> WorkerPort<P> {
    /// Creates the port. Its connections come from `accepted`.
    pub(super) fn new(served: P, tls: Option<Arc<TlsPort>>, accepted: AcceptedConnections) -> Self {
        Self { served, tls: tls.map(TlsWorker::new), accepted }
    }

    /// Serves until `stop`'s sender is dropped and the calls in flight have finished.
    pub(super) async fn serve(mut self, stop: watch::Receiver<()>) {
        let mut open = JoinSet::new();
        let mut begun = 0;
        let mut stopping = pin!(stopped(stop.clone()));
        loop {
            tokio::select! {
                () = &mut stopping => break,
                accepted = self.accepted.recv() => {
                    let Some((stream, counted)) = accepted else { break };
                    begun += usize::from(self.begin(&mut open, stream, counted, &stop));
                    if begun >= BEGUN_AT_ONCE {
                        begun = 0;
                        yield_now().await;
                    }
                }
                Some(_) = open.join_next() => {}
            }
        }
        // The listener is closed. Connections that it had accepted may carry calls already.
        while let Ok((stream, counted)) = self.accepted.try_recv() {
            self.begin(&mut open, stream, counted, &stop);
        }
        while open.join_next().await.is_some() {}
    }

    /// Begins to serve a connection. Returns false if it was over already.
    fn begin(
        &mut self,
        open: &mut JoinSet<()>,
        stream: Accepted,
        counted: OpenConnection,
        stop: &watch::Receiver<()>,
    ) -> bool {
        let peer = Peer::new(stream.peer_address());
        let begun = match (stream, self.tls.clone()) {
            (Accepted::Tcp(stream, slot), Some(tls)) => {
                let Some(slot) = tls.begin(&stream, &peer, slot) else { return false };
                let opened = self.served.opened(counted, stop.clone());
                let secured = |stream| serve_tls(opened, tls, (stream, peer, slot), stop.clone());
                TcpStream::from_std(stream).map(|stream| drop(open.spawn(secured(stream))))
            }
            (Accepted::Tcp(stream, _), None) => {
                let opened = self.served.opened(counted, stop.clone());
                TcpStream::from_std(stream)
                    .map(|stream| drop(open.spawn(opened.serve(stream, Arc::new(peer)))))
            }
            (Accepted::Unix(stream), _) => {
                let opened = self.served.opened(counted, stop.clone());
                UnixStream::from_std(stream)
                    .map(|stream| drop(open.spawn(opened.serve(stream, Arc::new(peer)))))
            }
        };
        if let Err(error) = begun {
            tracing::debug!(%error, "cannot register an accepted connection");
        }
        true
    }
}

/// Performs the handshake, and serves the connection until it ends.
async fn serve_tls<O: ServeStream>(
    opened: O,
    tls: TlsWorker,
    (socket, peer, slot): (TcpStream, Peer, HandshakeSlot),
    stop: watch::Receiver<()>,
) {
    // A connection that was accepted before a shutdown may carry calls.
    let too_late = async {
        stopped(stop).await;
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    };
    let secured = tokio::select! {
        // Boxed, so that the memory of a handshake does not stay with the connection.
        secured = Box::pin(tls.handshake(socket, peer, slot)) => secured,
        () = too_late => None,
    };
    let Some(secured) = secured else { return };
    let guard = secured.guard();
    tokio::select! {
        () = opened.serve(secured.stream, secured.peer) => {}
        never = guard => match never {},
    }
}
