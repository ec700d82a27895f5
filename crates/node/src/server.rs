//! The gRPC server: one single-threaded runtime per core, and one acceptor that deals connections out.
//!
//! ```text
//!                   ┌─ worker 0: runtime, HTTP/2, store ─┐
//!   accept ── fewest┤                                   ├── calls in flight finish ── end
//!   (this thread)   └─ worker 1: runtime, HTTP/2, store ─┘
//! ```
//!
//! Nothing that serves a call is ever woken from another core: that is worth more than half of a
//! call's CPU compared with one runtime that moves work between cores.

mod accept;
mod connection_server;
mod connections;
mod dispatch;
mod health;
mod listener;
mod open;
mod open_files;
mod router;
mod routes;
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
pub use self::listener::{Listener, SocketFile};
pub use self::open_files::raise_open_files;
use self::open_files::{OpenFiles, TooFewFiles};
use self::worker::Workers;
use crate::limiter::envoy::{EnvoyRules, Loaded};
use crate::queues::SharedQueues;
use crate::readiness::Readiness;
use crate::service::{EnvoyAnswers, Templates};
use crate::telemetry::{EnvoyMetrics, Metrics};
use crate::usage::UsageHandle;

/// One worker's stores.
pub struct WorkerStores<S> {
    /// Of rate limits.
    pub decisions: S,
    /// Of leases; without it there is no `ConcurrencyService`.
    pub leases: Option<LeaseHandle>,
    /// Of queues; without it there is no `QueueService`.
    pub queues: Option<QueueHandle>,
}

impl<S> From<S> for WorkerStores<S> {
    /// Those of a service without leases and queues.
    fn from(decisions: S) -> Self {
        Self { decisions, leases: None, queues: None }
    }
}

/// Makes one worker's stores; called once on each worker, within its runtime.
pub type MakeStores<S> = Box<dyn Fn() -> WorkerStores<S> + Send + Sync>;

/// What the workers are made of.
pub struct Parts<S> {
    /// The strategies.
    pub rules: Arc<Rules>,
    /// The sentences on denial.
    pub templates: Arc<Templates>,
    /// Where state lives.
    pub store: MakeStores<S>,
    /// Files that the stores of all workers may have open.
    pub store_files: usize,
    /// What the health service reports.
    pub readiness: Readiness,
    /// The queues, and who waits for their items.
    pub queues: Arc<SharedQueues>,
    /// Where the workers count.
    pub metrics: Metrics,
    /// What answers Envoy.
    pub envoy: EnvoyParts,
    /// What answers questions about usage; without it there is no `UsageService`.
    pub usage: Option<UsageHandle>,
    /// What looks at the headers of every call first, if anything does.
    pub intercept: Option<Arc<dyn Intercept>>,
}

/// What Envoy's rate limit service is made of.
#[derive(Clone)]
pub struct EnvoyParts {
    /// The rules that serve now, if any were read.
    pub live: Arc<ArcSwapOption<Loaded>>,
    /// What holds for every request.
    pub rules: EnvoyRules,
    /// What answers hold.
    pub answers: EnvoyAnswers,
    /// Where hits are counted.
    pub metrics: EnvoyMetrics,
}

impl EnvoyParts {
    /// Those of a node that has read no files: each call gets an error that says so.
    #[must_use]
    pub fn without_files(metrics: EnvoyMetrics) -> Self {
        let rules = (&EnvoyConfig::default()).into();
        Self { live: Arc::default(), rules, answers: EnvoyAnswers::default(), metrics }
    }
}

/// Why serving ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The operating system refused something that the server cannot do without.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
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

/// How a server is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// First say for `drain_delay` that the server is not ready, and serve meanwhile.
    Delayed,
    /// Close the listener at once.
    Immediate,
}

/// Ends when the server has to stop. It is boxed, so that no caller compiles the server once more.
pub type ShutdownSignal = Pin<Box<dyn Future<Output = Shutdown>>>;

/// Serves on `listener` until `shutdown`. From then on it is not ready. It serves for the drain delay, unless it is
/// asked not to, and then closes the listener and lets the calls in flight finish, for the drain timeout at
/// most. Blocks its thread.
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
    let mut workers = Workers::start(worker_count(config), &budget, config, parts, &stopped)?;
    runtime.block_on(async {
        let acceptor = Acceptor::new(listener, workers.hands(), max_connections, files, refused)?;
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

/// A runtime on the current thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ServerError::Io { what: "starting a runtime", error })
}

/// How many workers serve.
pub(crate) fn worker_count(config: &ServerConfig) -> usize {
    match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}
