//! The gRPC connections of one worker, until their end.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;

use weir_config::{ServerConfig, ServerLimits, TransportKind};
use weir_grpc::{
    ConnectionContext, ConnectionEnd, ConnectionLimits, ConnectionObserver, ErrorCode, Http2Connection, Peer,
    WorkerBudget,
};
use weir_store::Store;

use super::open::OpenConnection;
use super::services::Services;
use super::stopping::{SHUTDOWN_TIMEOUT, stopped};
use super::tonic_server::{self, TonicServices};
use super::worker_port::{ServeConnections, ServeStream};

use crate::telemetry::TransportMetrics;

/// Time in which a connection ends after [`Peer::disconnect`], whatever its calls do.
const DISCONNECT_GRACE: Duration = Duration::from_millis(1500);

pub(super) struct Connections<S> {
    services: Arc<Services<S>>,
    transport: TransportKind,
    limits: Arc<ServerLimits>,
    shared: ConnectionContext,
    metrics: Arc<TransportMetrics>,
    ages: Ages,
}

/// The maximum ages of connections. They are spread: otherwise all clients that connected together after a restart
/// would reconnect together again and again.
struct Ages {
    age: Option<Duration>,
    turn: u32,
}

impl<S: Store> Connections<S> {
    /// Creates the connections of a worker. Must be called within its runtime.
    pub(super) fn new(
        services: Arc<Services<S>>,
        config: &ServerConfig,
        budget: WorkerBudget,
        metrics: Arc<TransportMetrics>,
    ) -> Self {
        let limits = &config.limits;
        let observer = Arc::clone(&metrics) as Arc<dyn ConnectionObserver>;
        Self {
            services,
            transport: config.transport,
            limits: Arc::new(limits.clone()),
            shared: ConnectionContext { limits: fast_limits(limits), budget, observer },
            metrics,
            ages: Ages { age: limits.max_connection_age.map(Duration::from), turn: 0 },
        }
    }

    /// Serves one connection until the other side closes it; or, from its maximum age or `stop` on, until its calls
    /// have finished.
    pub(super) fn one<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &mut self,
        stream: I,
        peer: Arc<Peer>,
        counted: OpenConnection,
        stop: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + use<I, S> {
        self.opened(counted, stop).serve(stream, peer)
    }
}

impl<S: Store> ServeConnections for Connections<S> {
    type Opened = Opened<S>;

    fn opened(&mut self, counted: OpenConnection, stop: watch::Receiver<()>) -> Opened<S> {
        Opened {
            services: Arc::clone(&self.services),
            transport: self.transport,
            limits: Arc::clone(&self.limits),
            shared: self.shared.clone(),
            metrics: Arc::clone(&self.metrics),
            age: self.ages.next(),
            counted,
            stop,
        }
    }
}

/// An accepted connection without its byte stream.
pub(super) struct Opened<S> {
    services: Arc<Services<S>>,
    transport: TransportKind,
    limits: Arc<ServerLimits>,
    shared: ConnectionContext,
    metrics: Arc<TransportMetrics>,
    age: Option<Duration>,
    counted: OpenConnection,
    stop: watch::Receiver<()>,
}

impl<S: Store> ServeStream for Opened<S> {
    async fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: I, peer: Arc<Peer>) {
        let Self { services, transport, limits, shared, metrics, age, counted, stop } = self;
        let _counted = counted;
        let grace = limits.max_connection_age_grace.into();
        let life = Life { age, grace, stop, peer: Arc::clone(&peer), metrics };
        let ended = match transport {
            TransportKind::Fast => {
                let (close, closing) = watch::channel(());
                let connection = Http2Connection::new(stream, &peer, services, &shared, closing);
                let floods = Arc::clone(&life.metrics);
                life.serve(connection, close).await.map_err(|error| {
                    name_flooding_peer(&error, &peer, &floods);
                    error.to_string()
                })
            }
            // Boxed, so that the future of a `fast` connection is not as large as this one.
            TransportKind::Tonic => {
                let services = TonicServices {
                    methods: services.methods.clone(),
                    router: services.router.clone(),
                    deadlines: services.decisions.deadlines().clone(),
                    decisions: services,
                };
                let stream = Box::new(stream);
                let live = tonic_server::live(stream, &peer, services, &limits, &shared, life.over());
                tokio::select! {
                    ended = Box::pin(live) => ended.map_err(|error| error.to_string()),
                    () = cut_off(&peer) => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error, "connection closed with an error");
        }
    }
}

/// Waits until a connection that was asked to end must have ended.
pub(super) async fn cut_off(peer: &Peer) {
    peer.disconnected().await;
    tokio::time::sleep(DISCONNECT_GRACE).await;
}

/// Reports the peer of a flood for operators.
fn name_flooding_peer(error: &ConnectionEnd, peer: &Peer, metrics: &TransportMetrics) {
    if let ConnectionEnd::Protocol(error) = error
        && error.code == ErrorCode::EnhanceYourCalm
    {
        metrics.flooded(&peer.address().to_string(), error.reason);
    }
}

struct Life {
    age: Option<Duration>,
    /// Grace period for the calls of a connection that has reached its maximum age.
    grace: Duration,
    stop: watch::Receiver<()>,
    peer: Arc<Peer>,
    metrics: Arc<TransportMetrics>,
}

enum LifeEnd {
    Aged,
    Stopped,
    Disconnected,
}

impl Life {
    /// Waits until the connection has reached its maximum age, or has to stop.
    async fn over(self) {
        self.end().await;
    }

    async fn end(&self) -> LifeEnd {
        tokio::select! {
            () = too_old(self.age) => {
                self.metrics.aged();
                LifeEnd::Aged
            }
            () = stopped(self.stop.clone()) => LifeEnd::Stopped,
            () = self.peer.disconnected() => LifeEnd::Disconnected,
        }
    }

    /// Serves until the other side closes the connection; or, from its maximum age or `stop` on, until its calls
    /// have finished. Dropping `close` ends streaming calls.
    async fn serve<I: AsyncRead + AsyncWrite + Unpin, S: Store>(
        self,
        mut connection: Http2Connection<I, Services<S>>,
        close: watch::Sender<()>,
    ) -> Result<(), ConnectionEnd> {
        let end = tokio::select! {
            biased;
            ended = connection.serve() => return ended,
            end = self.end() => end,
        };
        let grace = match end {
            LifeEnd::Stopped => return shut_down(&mut connection, close).await,
            LifeEnd::Aged => self.grace,
            LifeEnd::Disconnected => DISCONNECT_GRACE,
        };
        // Streams and watches that outlast the grace period end with their connection.
        timeout(grace, shut_down(&mut connection, close)).await.unwrap_or(Ok(()))
    }
}

async fn shut_down<I: AsyncRead + AsyncWrite + Unpin, S: Store>(
    connection: &mut Http2Connection<I, Services<S>>,
    close: watch::Sender<()>,
) -> Result<(), ConnectionEnd> {
    // A connection that was accepted just now may carry a call, and its GOAWAY must follow our SETTINGS.
    if !connection.handshake_done() {
        match timeout(SHUTDOWN_TIMEOUT, connection.serve_handshake()).await {
            Ok(None) => {}
            Ok(Some(ended)) => return ended,
            Err(_) => return Ok(()),
        }
    }
    connection.shut_down();
    drop(close);
    match timeout(SHUTDOWN_TIMEOUT, connection.serve()).await {
        Ok(ended) => ended,
        Err(_) => {
            connection.finish_shutdown();
            connection.serve().await
        }
    }
}

fn fast_limits(limits: &ServerLimits) -> ConnectionLimits {
    ConnectionLimits {
        max_streams: limits.max_streams,
        max_side_streams: limits.max_side_streams,
        max_header_bytes: limits.max_header_bytes,
        max_pending_resets: limits.max_pending_resets,
        max_local_resets: limits.max_local_resets,
        handshake_timeout: limits.handshake_timeout.into(),
        first_message_timeout: limits.first_message_timeout.into(),
        keepalive_interval: limits.keepalive_interval.into(),
        keepalive_timeout: limits.keepalive_timeout.into(),
        http1_hint: "/metrics, /livez and /readyz are on another one: see `server.admin`.",
    }
}

impl Ages {
    /// Returns the age of the next connection: eight to twelve tenths of the configured one. Multiples of the golden
    /// ratio are spread evenly for any number of connections.
    fn next(&mut self) -> Option<Duration> {
        const GOLDEN: u32 = 0x9e37_79b9;
        self.turn = self.turn.wrapping_add(GOLDEN);
        let age = self.age?;
        Some(age * 8 / 10 + (age * 2 / 5).mul_f64(f64::from(self.turn) / f64::from(u32::MAX)))
    }
}

async fn too_old(age: Option<Duration>) {
    match age {
        Some(age) => tokio::time::sleep(age).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_lie_within_a_fifth() {
        let mut ages = Ages { age: Some(Duration::from_secs(100)), turn: 0 };
        let mut seen: Vec<f64> = (0..16).filter_map(|_| ages.next()).map(|age| age.as_secs_f64()).collect();
        seen.sort_by(f64::total_cmp);
        assert!(seen[0] >= 80.0 && seen[15] <= 120.0, "{seen:?}");
        assert!(seen.windows(2).all(|pair| (0.6..6.0).contains(&(pair[1] - pair[0]))), "{seen:?}");
        assert_eq!(Ages { age: None, turn: 0 }.next(), None);
    }
}
