//! The ports of features: their connections, on the workers that also serve gRPC.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::future::join_all;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, yield_now};
use weir_grpc::{BoxedStream, Peer};

use super::Listener;
use super::connections::{BEGUN_AT_ONCE, cut_off};
use super::listener::Accepted;
use super::open::OpenConnection;
use super::stopping::{SHUTDOWN_TIMEOUT, stopped};
use super::tls_connection::TlsWorker;
use crate::feature::{PortConnection, RunningFeature, ServePort, WorkerContext};
use crate::tls::{HandshakeSlot, TlsPort};

/// A feature that runs, with its port if it has one.
pub struct StartedFeature {
    /// The feature.
    pub running: Arc<dyn RunningFeature>,
    /// TLS of its port.
    pub tls: Option<Arc<TlsPort>>,
    /// Its port, until the server accepts on it.
    pub socket: Option<FeatureSocket>,
}

/// The listening socket of a feature.
pub struct FeatureSocket {
    /// The socket.
    pub listener: Listener,
    /// The bound of connections; further ones are closed at once.
    pub max_connections: usize,
    /// Counts those.
    pub refused: Arc<AtomicU64>,
}

/// Connections that the acceptor of a port gives to a worker.
pub(super) type AcceptedConnections = mpsc::UnboundedReceiver<(Accepted, OpenConnection)>;

/// The ports of all features on one worker.
pub(super) struct WorkerPorts(Vec<PortConnections>);

/// The connections of one port on one worker.
struct PortConnections {
    port: Arc<dyn ServePort>,
    tls: Option<TlsWorker>,
    accepted: AcceptedConnections,
}

impl WorkerPorts {
    /// Creates the ports of a worker. `accepted` has those of each feature.
    pub(super) fn new(
        features: &[StartedFeature],
        accepted: Vec<AcceptedConnections>,
        worker: &WorkerContext,
    ) -> Self {
        let ports = features.iter().zip(accepted).filter_map(|(feature, accepted)| {
            let tls = feature.tls.clone().map(TlsWorker::new);
            Some(PortConnections { port: feature.running.worker(worker).port?, tls, accepted })
        });
        Self(ports.collect())
    }

    /// Serves until `stop`'s sender is dropped and the calls in flight have finished.
    pub(super) async fn serve(self, stop: &watch::Receiver<()>) {
        join_all(self.0.into_iter().map(|port| port.serve(stop.clone()))).await;
    }
}

impl PortConnections {
    async fn serve(mut self, stop: watch::Receiver<()>) {
        let mut open = JoinSet::new();
        let mut begun = 0;
        let mut stopping = pin!(stopped(stop.clone()));
        loop {
            tokio::select! {
                () = &mut stopping => break,
                accepted = self.accepted.recv() => {
                    let Some((stream, counted)) = accepted else { break };
                    self.begin(&mut open, stream, counted, &stop);
                    begun += 1;
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

    fn begin(
        &self,
        open: &mut JoinSet<()>,
        stream: Accepted,
        counted: OpenConnection,
        stop: &watch::Receiver<()>,
    ) {
        let opened = OpenedPort { port: Arc::clone(&self.port), stop: stop.clone(), counted };
        let peer = Peer::new(stream.peer_address());
        let begun = match (stream, self.tls.clone()) {
            (Accepted::Tcp(stream, _), None) => TcpStream::from_std(stream)
                .map(|stream| drop(open.spawn(opened.serve(Box::new(stream), Arc::new(peer))))),
            (Accepted::Tcp(stream, slot), Some(tls)) => {
                let Some(slot) = tls.begin(&stream, &peer, slot) else { return };
                TcpStream::from_std(stream)
                    .map(|stream| drop(open.spawn(opened.serve_tls(tls, stream, peer, slot))))
            }
            (Accepted::Unix(stream), _) => UnixStream::from_std(stream)
                .map(|stream| drop(open.spawn(opened.serve(Box::new(stream), Arc::new(peer))))),
        };
        if let Err(error) = begun {
            tracing::debug!(%error, "a connection could not be taken over");
        }
    }
}

/// An accepted connection without its byte stream.
struct OpenedPort {
    port: Arc<dyn ServePort>,
    stop: watch::Receiver<()>,
    counted: OpenConnection,
}

impl OpenedPort {
    /// Performs the handshake, and serves the connection until it ends.
    async fn serve_tls(self, tls: TlsWorker, socket: TcpStream, peer: Peer, slot: HandshakeSlot) {
        let stop = self.stop.clone();
        let too_late = async {
            stopped(stop).await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        let secured = tokio::select! {
            secured = Box::pin(tls.handshake(socket, peer, slot)) => secured,
            () = too_late => None,
        };
        let Some(secured) = secured else { return };
        let guard = secured.guard();
        tokio::select! {
            () = self.serve(Box::new(secured.stream), secured.peer) => {}
            never = guard => match never {},
        }
    }

    /// Serves the connection until it ends.
    async fn serve(self, stream: BoxedStream, peer: Arc<Peer>) {
        let Self { port, stop, counted } = self;
        let _counted = counted;
        let (asked, ended) = (Arc::clone(&peer), Arc::clone(&peer));
        let over = Box::pin(async move {
            tokio::select! {
                () = stopped(stop) => {}
                () = asked.disconnected() => {}
            }
        });
        tokio::select! {
            () = port.serve(PortConnection { stream, peer, over }) => {}
            () = cut_off(&ended) => {}
        }
    }
}
