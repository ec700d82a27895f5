//! The services of one worker over single connections, which need not be sockets. Tests and benchmarks use it over
//! a pipe in memory.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use weir_config::{ServerConfig, ServerLimits};
use weir_grpc::{BufferBudget, Peer};
use weir_store::Store;

use super::connections::Connections;
use super::open::OpenConnection;
use super::{Parts, ServerError, routes};

/// Serves connections one at a time, without threads or listeners of its own.
pub struct ConnectionServer<S> {
    connections: Connections<S>,
    open: Arc<std::sync::atomic::AtomicUsize>,
}

impl<S: Store> ConnectionServer<S> {
    /// Creates the services of worker 0.
    pub fn new(config: &ServerConfig, parts: &Parts<S>) -> Result<Self, ServerError> {
        let ServerLimits { max_buffered_bytes, max_open_streams, .. } = config.limits;
        let budget = BufferBudget::with_streams(max_buffered_bytes, 1, max_open_streams);
        let services = Arc::new(routes::services((parts.store)(), parts, 0, config, &budget)?);
        let budget = budget.worker();
        let connections = Connections::new(services, config, budget, parts.metrics.transport());
        Ok(Self { connections, open: parts.metrics.connections() })
    }

    /// Serves one connection until it ends; or, once `stop`'s sender is dropped, until its calls have finished.
    /// Must be called within a runtime.
    pub fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &mut self,
        stream: I,
        stop: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + use<I, S> {
        self.serve_peer(stream, Arc::default(), stop)
    }

    /// Serves one connection as [`ConnectionServer::serve`] does, with this peer at its other end.
    pub fn serve_peer<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &mut self,
        stream: I,
        peer: Arc<Peer>,
        stop: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + use<I, S> {
        self.connections.one(stream, peer, OpenConnection::count(&self.open), stop)
    }
}
