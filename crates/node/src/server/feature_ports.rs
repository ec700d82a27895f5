//! The ports of features: their connections, on the workers that also serve gRPC.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use weir_grpc::Peer;

use super::Listener;
use super::connections::cut_off;
use super::open::OpenConnection;
use super::stopping::stopped;
use super::worker_port::{AcceptedConnections, ServeConnections, ServeStream, WorkerPort};
use crate::feature::{PortConnection, RunningFeature, ServePort, WorkerContext};
use crate::tls::TlsPort;

/// A feature that runs, with its port if it has one.
pub struct StartedFeature {
    /// The name.
    pub name: &'static str,
    /// The feature.
    pub running: Arc<dyn RunningFeature>,
    /// TLS of its port.
    pub tls: Option<Arc<TlsPort>>,
    /// The port, until the server accepts on it.
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

pub(super) struct WorkerPorts(Vec<WorkerPort<PortConnections>>);

struct PortConnections(Arc<dyn ServePort>);

/// An accepted connection without its byte stream.
struct OpenedPort {
    port: Arc<dyn ServePort>,
    stop: watch::Receiver<()>,
    counted: OpenConnection,
}

impl WorkerPorts {
    /// Creates the ports of a worker. `accepted` has those of each feature.
    pub(super) fn new(
        features: &[StartedFeature],
        accepted: Vec<AcceptedConnections>,
        worker: &WorkerContext,
    ) -> Self {
        let ports = features.iter().zip(accepted).filter_map(|(feature, accepted)| {
            let port = PortConnections(feature.running.worker(worker).port?);
            Some(WorkerPort::new(port, feature.tls.clone(), accepted))
        });
        Self(ports.collect())
    }

    /// Serves until `stop`'s sender is dropped and the calls in flight have finished.
    pub(super) async fn serve(self, stop: &watch::Receiver<()>) {
        join_all(self.0.into_iter().map(|port| port.serve(stop.clone()))).await;
    }
}

impl ServeConnections for PortConnections {
    type Opened = OpenedPort;

    fn opened(&mut self, counted: OpenConnection, stop: watch::Receiver<()>) -> OpenedPort {
        OpenedPort { port: Arc::clone(&self.0), stop, counted }
    }
}

impl ServeStream for OpenedPort {
    async fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: I, peer: Arc<Peer>) {
        let Self { port, stop, counted } = self;
        let _counted = counted;
        let (stream, asked, ended) = (Box::new(stream), Arc::clone(&peer), Arc::clone(&peer));
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
