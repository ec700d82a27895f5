//! The gRPC server: one single-threaded runtime per core, and one acceptor that deals connections out.
//!
//! ```text
//!                   ┌─ worker 0: runtime, HTTP/2, store ─┐
//!   accept ── fewest┤                                   ├── calls in flight finish ── end
//!   (this thread)   └─ worker 1: runtime, HTTP/2, store ─┘
//! ```
//!
//! No call is ever woken from another core. Compared with one runtime that moves work between cores, this saves
//! more than half of a call's CPU.

mod accept;
mod body_layer;
mod connection_server;
mod connections;
mod dispatch;
mod health;
mod listener;
mod open;
mod open_files;
mod router;
mod routes;
mod tls_connection;
mod tonic_server;
mod until_deadline;
mod worker;

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use weir_config::{EnvoyConfig, ServerConfig, ServerLimits};
use weir_core::strategy::Rules;
use weir_grpc::{BufferBudget, Intercept};
use weir_store::{LeaseHandle, QueueHandle, Store};

use self::accept::Acceptor;
pub use self::connection_server::ConnectionServer;
pub use self::listener::{Listener, SocketFile, listen_tcp};
pub use self::open_files::raise_open_files;
use self::open_files::{OpenFiles, TooFewFiles};
use self::worker::Workers;
use crate::limiter::envoy::{EnvoyRules, Loaded};
use crate::queues::SharedQueues;
use crate::readiness::Readiness;
use crate::service::{EnvoyAnswers, Templates};
use crate::telemetry::{EnvoyMetrics, Metrics};
use crate::tls::TlsPort;
use crate::usage::UsageHandle;

/// The stores of one worker.
pub struct WorkerStores<S> {
    /// The store of rate limits.
    pub decisions: S,
    /// The store of leases; without it there is no `ConcurrencyService`.
    pub leases: Option<LeaseHandle>,
    /// The store of queues; without it there is no `QueueService`.
    pub queues: Option<QueueHandle>,
}

impl<S> From<S> for WorkerStores<S> {
    /// Creates the stores of a service without leases and queues.
    fn from(decisions: S) -> Self {
        Self { decisions, leases: None, queues: None }
    }
}

/// A constructor of one worker's stores. It is called once on each worker, within its runtime.
pub type MakeStores<S> = Box<dyn Fn() -> WorkerStores<S> + Send + Sync>;

/// A constructor of one worker's interceptor. Workers share none, so that they share no locks.
pub type MakeIntercept = Box<dyn Fn() -> Arc<dyn Intercept> + Send + Sync>;

/// The dependencies of the workers.
pub struct Parts<S> {
    /// The configured strategies.
    pub rules: Arc<Rules>,
    /// The templates of denial messages.
    pub templates: Arc<Templates>,
    /// The constructor of the stores.
    pub store: MakeStores<S>,
    /// Files that the stores of all workers may have open.
    pub store_files: usize,
    /// The state that the health service reports.
    pub readiness: Readiness,
    /// The queues, and the subscribers that wait for their items.
    pub queues: Arc<SharedQueues>,
    /// The metrics of the workers.
    pub metrics: Metrics,
    /// The dependencies of Envoy's rate limit service.
    pub envoy: EnvoyParts,
    /// The usage statistics; without them there is no `UsageService`.
    pub usage: Option<UsageHandle>,
    /// The constructor of the interceptor of every call, if there is one.
    pub intercept: Option<MakeIntercept>,
    /// TLS of the port; without it, connections are plain text.
    pub tls: Option<Arc<TlsPort>>,
}

/// The dependencies of Envoy's rate limit service.
#[derive(Clone)]
pub struct EnvoyParts {
    /// The current rules, if any were read.
    pub live: Arc<ArcSwapOption<Loaded>>,
    /// The settings that apply to every request.
    pub rules: EnvoyRules,
    /// The contents of answers.
    pub answers: EnvoyAnswers,
    /// The metrics of hits.
    pub metrics: EnvoyMetrics,
}

impl EnvoyParts {
    /// Creates those of a node that has read no files: each call gets an error that says so.
    #[must_use]
    pub fn without_files(metrics: EnvoyMetrics) -> Self {
        let rules = (&EnvoyConfig::default()).into();
        Self { live: Arc::default(), rules, answers: EnvoyAnswers::default(), metrics }
    }
}

/// The reason why the server ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The operating system refused an operation that the server needs.
    #[error("{what}: {error}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The gRPC server itself failed.
    #[error("the gRPC server failed: {0}")]
    Grpc(String),
    /// The limit of open files is too low.
    #[error(transparent)]
    OpenFiles(#[from] TooFewFiles),
    /// A worker ended although it was not asked to.
    #[error("worker {0} ended unexpectedly: this is a bug in weir; see the log lines before this one")]
    WorkerLost(usize),
}

/// The kind of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Report "not ready" for `drain_delay` and serve meanwhile, then close the listener.
    Delayed,
    /// Close the listener at once.
    Immediate,
}

/// Resolves when the server has to stop. Boxed, so that `run` is not generic over it and is compiled once.
pub type ShutdownSignal = Pin<Box<dyn Future<Output = Shutdown>>>;

/// Serves on `listener` until `shutdown`. From then on the node is not ready. It serves for the drain delay, unless
/// the shutdown is immediate. Then it closes the listener and lets the calls in flight finish, for the drain
/// timeout at most. Blocks its thread.
pub fn run<S: Store>(
    config: &ServerConfig,
    listener: Listener,
    parts: Parts<S>,
    shutdown: ShutdownSignal,
) -> Result<(), ServerError> {
    let runtime = runtime()?;
    let readiness = parts.readiness.clone();
    let (stop, stopped) = watch::channel(());
    let refused = parts.metrics.connections_refused();
    let max_connections = config.limits.max_connections;
    let files = OpenFiles::of_process(parts.store_files + config.limits.admin_max_connections);
    files.compare(max_connections, worker_count(config))?;
    readiness.accepts_if(move || files.has_place());
    let ServerLimits { max_buffered_bytes, max_open_streams, .. } = config.limits;
    let budget = BufferBudget::with_streams(max_buffered_bytes, worker_count(config), max_open_streams);
    parts.metrics.show_budget(budget.clone());
    let tls = parts.tls.clone();
    let mut workers = Workers::start(worker_count(config), &budget, config, parts, &stopped)?;
    runtime.block_on(async {
        let acceptor = Acceptor::new(listener, workers.hands(), max_connections, files, refused, tls)?;
        let delayed = async {
            let shutdown = shutdown.await;
            readiness.drain();
            if shutdown == Shutdown::Delayed {
                let delay_ms = config.drain_delay.0 / 1000;
                tracing::info!(delay_ms, "shutting down: not ready from now on; calls are still served");
                tokio::time::sleep(config.drain_delay.into()).await;
            }
        };
        tokio::select! {
            () = delayed => {}
            never = acceptor.run() => match never {},
            lost = workers.any_ended() => return Err(lost),
        }
        acceptor.close();
        readiness.close();
        tracing::info!("shutting down: no new connections; calls in flight may finish");
        drop(stop);
        workers.all_ended().await
    })
}

/// Creates a runtime on the current thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ServerError::Io { what: "starting a runtime", error })
}

/// Returns the number of workers.
pub(crate) fn worker_count(config: &ServerConfig) -> usize {
    match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}
