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
mod feature_calls;
mod feature_ports;
mod health;
mod listener;
mod live;
mod open;
mod open_files;
mod operations;
mod router;
mod routes;
mod services;
mod stopping;
mod tls_connection;
mod tonic_server;
mod until_deadline;
mod worker;
mod worker_decisions;
mod worker_port;

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::select_all;
use tokio::sync::watch;
use weir_config::{ServerConfig, ServerLimits};
use weir_grpc::{BufferBudget, Intercept};
use weir_store::Store;
use weir_store::scripts::AskScripts;

use self::accept::Acceptor;
pub use self::connection_server::ConnectionServer;
pub use self::feature_ports::{FeatureSocket, StartedFeature};
pub use self::listener::{Listener, SocketFile, listen_tcp};
pub use self::live::LiveSnapshot;
pub use self::open_files::raise_open_files;
use self::open_files::{OpenFiles, TooFewFiles};
pub(crate) use self::operations::{MAX_OPERATORS, start_operations};
use self::worker::Workers;
use crate::audit::AuditLog;
use crate::feature::{FeatureList, RunningFeature};
use crate::readiness::Readiness;
use crate::telemetry::Metrics;
use crate::tls::TlsPort;

/// The stores of one worker.
pub struct WorkerStores<S> {
    /// The store of rate limits.
    pub decisions: S,
    /// Scripts of features on the same connections, if the backend runs scripts.
    pub scripts: Option<Arc<dyn AskScripts>>,
}

impl<S> From<S> for WorkerStores<S> {
    /// Creates the stores of a worker without scripts.
    fn from(decisions: S) -> Self {
        Self { decisions, scripts: None }
    }
}

/// A constructor of one worker's stores. It is called once on each worker, within its runtime.
pub type MakeStores<S> = Box<dyn Fn() -> WorkerStores<S> + Send + Sync>;

/// A constructor of one worker's interceptor. Workers share none, so that they share no locks.
pub type MakeIntercept = Box<dyn Fn() -> Arc<dyn Intercept> + Send + Sync>;

/// Bounds of the files that the stores of all workers have open.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreFiles {
    /// With any configuration.
    pub always: usize,
    /// On top of them, for each feature that has connections of its own.
    pub of_feature: usize,
}

/// The dependencies of the workers.
pub struct Parts<S> {
    /// The current snapshot of the configuration.
    pub live: Arc<LiveSnapshot>,
    /// The constructor of the stores.
    pub store: MakeStores<S>,
    /// Files that the stores of all workers may have open.
    pub store_files: StoreFiles,
    /// The state that the health service reports.
    pub readiness: Readiness,
    /// The metrics of the workers.
    pub metrics: Metrics,
    /// Log of operators' calls.
    pub audit: AuditLog,
    /// The services of this port.
    pub served: PortServices,
    /// The constructor of the interceptor of every call, if there is one.
    pub intercept: Option<MakeIntercept>,
    /// TLS of the port; without it, connections are plain text.
    pub tls: Option<Arc<TlsPort>>,
    /// The features that have ports beside this one.
    pub features: Vec<StartedFeature>,
    /// The features that run, by name, for their services on this port.
    pub running: Vec<(&'static str, Arc<dyn RunningFeature>)>,
    /// All features of the program.
    pub known: FeatureList,
}

/// The services of a port, as far as the configuration turns them on. Health is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortServices {
    /// All.
    All,
    /// All but those of operators, which have a port of their own.
    Calls,
    /// The services of operators.
    Operations,
    /// The services of one feature, by its name, in the place of another program.
    Feature(&'static str),
}

impl PortServices {
    fn calls(self) -> bool {
        matches!(self, Self::All | Self::Calls)
    }

    fn operations(self) -> bool {
        matches!(self, Self::All | Self::Operations)
    }

    fn calls_of(self, feature: &str) -> bool {
        self.calls() || matches!(self, Self::Feature(name) if name == feature)
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

/// Callback once a server has begun; nothing by default.
#[derive(Default)]
pub struct Serving(Option<Box<dyn FnOnce() + Send>>);

impl Serving {
    /// Calls `begun`.
    pub fn new(begun: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(begun)))
    }

    fn begun(self) {
        if let Some(begun) = self.0 {
            begun();
        }
    }
}

/// Serves on `listener` until `shutdown`, and says so by `serving` when nothing can be refused any more. From then on the
/// node is not ready. It serves for the drain delay, unless the shutdown is immediate. Then it closes the listener and lets
/// the calls in flight finish, for the drain timeout at most. Blocks its thread.
pub fn run<S: Store>(
    config: &ServerConfig,
    (listener, serving): (Listener, Serving),
    mut parts: Parts<S>,
    shutdown: ShutdownSignal,
) -> Result<(), ServerError> {
    let runtime = runtime()?;
    let readiness = parts.readiness.clone();
    let (stop, stopped) = watch::channel(());
    let refused = parts.metrics.connections_refused();
    let max_connections = config.limits.max_connections;
    let sockets: Vec<_> = parts.features.iter_mut().map(|feature| feature.socket.take()).collect();
    let files = open_files(config, &parts, &sockets)?;
    let shared = files.clone();
    readiness.accepts_if(move || shared.has_place());
    let ServerLimits { max_buffered_bytes, max_open_streams, .. } = config.limits;
    let budget = BufferBudget::with_streams(max_buffered_bytes, worker_count(config), max_open_streams);
    parts.metrics.show_budget(budget.clone());
    let tls = parts.tls.clone();
    let feature_tls: Vec<_> = parts.features.iter().map(|feature| feature.tls.clone()).collect();
    let mut workers = Workers::start(worker_count(config), &budget, config, parts, &stopped)?;
    runtime.block_on(async {
        let mut acceptors = Vec::new();
        for (index, (socket, tls)) in sockets.into_iter().zip(feature_tls).enumerate() {
            let Some(FeatureSocket { listener, max_connections, refused }) = socket else { continue };
            let hands = workers.feature_hands(index);
            acceptors.push(Acceptor::new(listener, hands, max_connections, files.clone(), refused, tls)?);
        }
        acceptors.push(Acceptor::new(listener, workers.hands(), max_connections, files, refused, tls)?);
        serving.begun();
        let delayed = async {
            let shutdown = shutdown.await;
            readiness.drain();
            if shutdown == Shutdown::Delayed {
                let delay_ms = config.drain_delay.0 / 1000;
                tracing::info!(delay_ms, "shutting down; not ready, still serving calls");
                tokio::time::sleep(config.drain_delay.into()).await;
            }
        };
        tokio::select! {
            () = delayed => {}
            never = select_all(acceptors.iter().map(|acceptor| Box::pin(acceptor.run()))) => match never.0 {},
            lost = workers.any_ended() => return Err(lost),
        }
        acceptors.into_iter().for_each(Acceptor::close);
        readiness.close();
        tracing::info!("shutting down; refusing new connections, and finishing calls in flight");
        drop(stop);
        workers.all_ended().await
    })
}

/// Reserves files for the stores and the admin port; those of a feature as soon as it has connections of its own.
fn open_files<S>(
    config: &ServerConfig,
    parts: &Parts<S>,
    sockets: &[Option<FeatureSocket>],
) -> Result<OpenFiles, ServerError> {
    let StoreFiles { always, of_feature } = parts.store_files;
    let (limits, workers) = (&config.limits, worker_count(config));
    let of_features = sockets.iter().flatten().map(|socket| socket.max_connections).sum::<usize>();
    let (fewer, max_connections) =
        (always + limits.admin_max_connections, limits.max_connections + of_features);
    let mut connected = parts.live.current().features.connected();
    let files = OpenFiles::of_process(fewer + connected * of_feature);
    files.compare(max_connections, workers)?;
    let shared = files.clone();
    parts.live.follow(move |snapshot| {
        let now = snapshot.features.connected();
        if now > connected {
            connected = now;
            shared.reserve(fewer + connected * of_feature);
            if let Err(too_few) = shared.compare(max_connections, workers) {
                tracing::warn!("{too_few}");
            }
        }
        true
    });
    Ok(files)
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ServerError::Io { what: "starting a runtime", error })
}

pub(crate) fn worker_count(config: &ServerConfig) -> usize {
    match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}
