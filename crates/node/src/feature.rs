//! The seam of features: what a node does beyond decisions. The node names none of them; the program lists them.
//!
//! ```text
//!   Feature ── settings: its section of the file     RunningFeature ── worker: what it serves on each worker
//!           ├─ prepare: its part of a snapshot                          its connections, and the calls it may make
//!           ├─ scripts: what it needs of the store             services: its gRPC services and hot methods on each worker
//!           ├─ begin: before the ports are open                guard: who is refused before a decision
//!           └─ start(NodeBuilder) ──────────────────►  NodeBuilder: metrics, files, tasks, one more worker, its part of the snapshot
//! ```

mod call_error;
mod decide;
mod node_calls;
mod node_shared;
mod scripts;
mod services;

use std::any::Any;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use prometheus::core::Collector;
use weir_config::{Config, ListenAddress, SectionSpec};
use weir_grpc::{BoxedStream, BufferBudget, Peer};
use weir_store::backend::{BackendStats, ProcessStates};
use weir_store::scripts::ScriptClient;
use weir_time::clock::Clock;

pub use self::call_error::{CallError, CallErrorDetail};
pub use self::decide::Decide;
pub use self::node_calls::{CallsCheck, NodeCall, NodeCalls};
pub use self::node_shared::NodeShared;
pub use self::scripts::{IsUsed, UsedScripts};
pub(crate) use self::scripts::{services, uses};
pub(crate) use self::services::methods;
pub use self::services::{
    BeginHotCall, FeatureServices, FollowSnapshot, HotRoute, MethodSpec, ServiceContext, ServiceSpec,
};
use crate::feature_pages::FeaturePages;
use crate::feature_parts::{FeaturePart, FeatureParts};
use crate::guard::Guard;
use crate::readiness::FileKind;
use crate::service::Snapshot;
use crate::telemetry::Metrics;
use crate::watch::WatchedFiles;

/// The features of a program.
pub type FeatureList = &'static [&'static dyn Feature];

/// Work of a feature after the background work of the node has begun, and before the first call. It may wait. Its result is
/// dropped after the last answer.
pub type BeforeCalls = Box<dyn FnOnce() -> Result<Box<dyn Any>, StartError>>;

/// Work that a feature does later.
pub type FeatureWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A part of a node beyond decisions.
pub trait Feature: Send + Sync + 'static {
    /// Returns the name of the feature.
    fn name(&self) -> &'static str;

    /// Returns its sections of the file.
    fn settings(&self) -> SettingsSpec {
        SettingsSpec::default()
    }

    /// Returns its gRPC services. They do not serve while no node of the store has its scripts.
    fn services(&self) -> &'static [ServiceSpec] {
        &[]
    }

    /// Returns its scripts: their text, the commands that an ACL must allow, and the configurations that need them.
    fn scripts(&self) -> &'static [UsedScripts] {
        &[]
    }

    /// Returns the kinds of files that it watches.
    fn files(&self) -> &'static [FileKind] {
        &[]
    }

    /// Does what must come before the node opens its ports; `None` if there is nothing.
    fn begin(&self, _config: &Config, _clock: &Clock) -> Result<Option<BegunFeature>, StartError> {
        Ok(None)
    }

    /// Makes its part of the next snapshot, if it has one. Mistakes, each a sentence, keep the previous snapshot.
    fn prepare(
        &self,
        _next: &Config,
        _previous: Option<&FeaturePart>,
    ) -> Result<Option<FeaturePart>, Vec<String>> {
        Ok(None)
    }

    /// Starts it; `None` if the configuration has it off, or if nothing of it runs by itself.
    fn start(&self, _node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        Ok(None)
    }
}

/// The settings of a feature.
#[derive(Debug, Clone, Copy, Default)]
pub struct SettingsSpec {
    /// Sections of the file.
    pub sections: &'static [SectionSpec],
}

/// A feature that runs.
pub trait RunningFeature: Send + Sync {
    /// Returns its gRPC services on one worker, under the current snapshot. It is called on the thread of the worker.
    fn services(&self, _worker: &ServiceContext, _snapshot: &Snapshot) -> FeatureServices {
        FeatureServices::default()
    }

    /// Returns who refuses banned callers before the store is asked, and sees denials: only for strategies with `ban`.
    fn guard(&self) -> Option<Arc<dyn Guard>> {
        None
    }

    /// Returns what it serves on one worker. It is called on the thread of the worker.
    fn worker(&self, _worker: &WorkerContext) -> WorkerServices {
        WorkerServices::default()
    }
}

/// A feature that has begun, before the node opens its ports.
pub struct BegunFeature {
    /// State for [`NodeBuilder::begun`].
    pub state: Box<dyn Any + Send>,
    /// Resolves when the ports may be opened; `None` if they may at once.
    pub ready: Option<FeatureWork>,
}

/// Gets each later configuration of the files, before it is served.
pub type FollowConfig = Box<dyn FnMut(&Config) + Send>;

/// Sets the feature's part of the snapshot.
pub type SetPart = Arc<dyn Fn(FeaturePart) + Send + Sync>;

/// Starts one more worker on the current thread, within its runtime: calls the function with its context and the current
/// snapshot. What that returns gets each later one.
pub type StartWorker = Arc<dyn Fn(&mut WorkerStart<'_>) + Send + Sync>;

/// The start of a worker.
pub type WorkerStart<'w> = dyn FnMut(&ServiceContext, &Snapshot) -> FollowSnapshot + 'w;

/// A node that starts, as a feature sees it.
pub struct NodeBuilder<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The number of workers.
    pub workers: usize,
    /// State that the feature began before the ports were opened.
    pub begun: Option<Box<dyn Any + Send>>,
    /// Sets its part of the snapshot.
    pub set_part: SetPart,
    /// Starts one more worker.
    pub start_worker: StartWorker,
    /// Files that it reads again when they change. They are looked at after those of the configuration.
    pub files: Vec<Box<dyn WatchedFiles>>,
    /// Callbacks with each later configuration of the files.
    pub configs: Vec<FollowConfig>,
    /// The parts of the first snapshot.
    pub parts: &'a FeatureParts,
    /// Counts the connections that the port of the feature refuses.
    pub refused_connections: Arc<AtomicU64>,
    /// Storage for the feature's states.
    pub storage: &'a Storage,
    /// Work in the background until the node ends, on a thread apart from the workers.
    pub background: Vec<FeatureWork>,
    /// Callbacks with the current snapshot, and then each later one.
    pub followers: Vec<FollowSnapshot>,
    /// Pages on the admin port.
    pub pages: FeaturePages,
    /// Work before the first call.
    pub before_calls: Vec<BeforeCalls>,
    /// Open files that it needs at most, besides those of connections to its port and of the workers to the store.
    pub open_files: usize,
    /// Parts that features share with the node.
    pub shared: &'a NodeShared,
    metrics: &'a Metrics,
}

/// Parts of a node for the features that start.
pub(crate) struct NodeParts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) metrics: &'a Metrics,
    pub(crate) parts: &'a FeatureParts,
    pub(crate) storage: &'a Storage,
    pub(crate) shared: &'a NodeShared,
    pub(crate) workers: usize,
    pub(crate) start_worker: &'a StartWorker,
}

/// Storage for states of features: over scripts, or in this process. On a backend with neither a feature says so at the
/// start.
#[derive(Clone, Default)]
pub struct Storage {
    /// A backend that runs scripts.
    pub scripts: Option<ScriptClient>,
    /// A backend in this process: its budget, clocks and sweeps.
    pub process: Option<ProcessStates>,
    /// Returns the numbers that the backend counts.
    pub stats: Option<ReadStats>,
}

/// Returns the numbers that a backend counts.
pub type ReadStats = Arc<dyn Fn() -> BackendStats + Send + Sync>;

/// The reason why a feature cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The metrics contradict others.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// A socket cannot be opened.
    #[error("cannot listen on {address} ({what}): {error}")]
    Bind {
        /// The purpose of the socket.
        what: &'static str,
        /// The address that was tried.
        address: ListenAddress,
        /// The error of the system.
        error: io::Error,
    },
    /// A text that says by itself what failed.
    #[error("{0}")]
    Complete(String),
    /// Any other reason, as a sentence.
    #[error("{0}")]
    Other(String),
}

/// One worker of the node.
pub struct WorkerContext {
    /// The calls of the worker.
    pub calls: Arc<dyn NodeCalls>,
    /// The bytes that the process may hold for its clients.
    pub budget: BufferBudget,
    /// True from the drain of the node on: calls are served, but belong elsewhere.
    pub draining: Arc<AtomicBool>,
}

/// Services of a feature on one worker.
#[derive(Default)]
pub struct WorkerServices {
    /// The connections of the feature's port.
    pub port: Option<Arc<dyn ServePort>>,
}

/// Serves the connections of a port.
pub trait ServePort: Send + Sync {
    /// Serves one connection until it ends.
    fn serve(&self, connection: PortConnection) -> FeatureWork;
}

/// A connection of a feature's port, after its handshake.
pub struct PortConnection {
    /// The bytes.
    pub stream: BoxedStream,
    /// The client.
    pub peer: Arc<Peer>,
    /// Resolves when the node drains, or the connection's credential is no longer good: it must end soon.
    pub over: FeatureWork,
}

impl<'a> NodeBuilder<'a> {
    pub(crate) fn new(node: &NodeParts<'a>, begun: Option<Box<dyn Any + Send>>, set_part: SetPart) -> Self {
        Self {
            config: node.config,
            workers: node.workers,
            begun,
            set_part,
            start_worker: Arc::clone(node.start_worker),
            files: Vec::new(),
            configs: Vec::new(),
            open_files: 0,
            parts: node.parts,
            refused_connections: Arc::default(),
            storage: node.storage,
            background: Vec::new(),
            followers: Vec::new(),
            pages: FeaturePages::default(),
            before_calls: Vec::new(),
            shared: node.shared,
            metrics: node.metrics,
        }
    }

    /// Returns the metrics of the node.
    pub fn metrics(&self) -> &Metrics {
        self.metrics
    }

    /// Shows metrics on the page of the node.
    pub fn show(&self, collector: impl Collector + 'static) -> Result<(), StartError> {
        Ok(self.metrics.show(Box::new(collector))?)
    }
}

/// Makes the parts of the next snapshot: of all features, or of none. A part that a feature leaves out stays away.
pub(crate) fn prepare(
    features: FeatureList,
    next: &Config,
    previous: &FeatureParts,
) -> Result<FeatureParts, (&'static str, Vec<String>)> {
    let mut parts = Vec::new();
    for feature in features {
        let name = feature.name();
        let part = feature.prepare(next, previous.part(name)).map_err(|mistakes| (name, mistakes))?;
        parts.extend(part.map(|part| (name, part)));
    }
    Ok(parts.into_iter().collect())
}
