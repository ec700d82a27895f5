//! The gRPC services of features.

use std::sync::Arc;

use tokio::sync::watch;
use weir_grpc::{Call, IncomingCall};
use weir_store::scripts::AskScripts;
use weir_time::deadlines::Deadlines;

use super::{Decide, FeatureList};
use crate::audit::AuditLog;
use crate::known_methods::KnownMethods;
pub use crate::known_methods::MethodSpec;
use crate::readiness::{Readiness, State};
use crate::service::{AddRoutes, Snapshot};
use crate::telemetry::{Metrics, WorkerCounters, WorkerRecorder};

/// A gRPC service of a feature.
#[derive(Debug, Clone, Copy)]
pub struct ServiceSpec {
    /// The full name.
    pub name: &'static str,
    /// Requirement of the service, as a sentence; empty if the node states it.
    pub needs: &'static str,
    /// Methods without a row in the table of rights.
    pub methods: &'static [MethodSpec],
    /// The paths of its streaming methods, with the memory of an open call in bytes, measured and rounded up.
    pub streams: &'static [(&'static str, usize)],
    /// The bound of its messages in bytes, if it is larger than that of decisions.
    pub largest_message: usize,
}

impl ServiceSpec {
    /// Creates one without methods of its own, streams and larger messages.
    pub const fn new(name: &'static str, needs: &'static str) -> Self {
        Self { name, needs, methods: &[], streams: &[], largest_message: 0 }
    }
}

/// One worker, before it serves.
pub struct ServiceContext {
    /// The number of the worker's calls of the store, and of refused calls.
    pub counters: Arc<WorkerCounters>,
    /// The counters of its decisions, under each snapshot.
    pub recorder: Arc<WorkerRecorder>,
    /// The number of the worker.
    pub worker: usize,
    /// The store of its decisions.
    pub store: Arc<dyn Decide>,
    /// The deadlines of its calls.
    pub deadlines: Deadlines,
    /// The connections of its decisions, if the backend runs scripts.
    pub scripts: Option<Arc<dyn AskScripts>>,
    /// Tells when this node shuts down.
    pub state: watch::Receiver<State>,
    /// Log of operators' calls.
    pub audit: AuditLog,
    /// True if the port serves the calls of everybody.
    pub serves_calls: bool,
    /// True if the port is that of operators, or of all.
    pub is_for_operators: bool,
    /// True if it serves their calls of `server.admin_service`.
    pub serves_operators: bool,
}

impl ServiceContext {
    /// Creates the context of a worker with this number and a store of its own, apart from those of gRPC.
    pub fn apart(
        worker: usize,
        store: Arc<dyn Decide>,
        metrics: &Metrics,
        (readiness, audit): (&Readiness, AuditLog),
    ) -> Self {
        let recorder = Arc::new(WorkerRecorder::new(metrics));
        Self {
            counters: Arc::clone(recorder.counters()),
            recorder,
            worker,
            store,
            deadlines: Deadlines::default(),
            scripts: None,
            state: readiness.subscribe(),
            audit,
            serves_calls: true,
            is_for_operators: false,
            serves_operators: false,
        }
    }
}

/// Serves a snapshot from now on, and returns false once its worker has ended.
pub type FollowSnapshot = Box<dyn FnMut(&Snapshot) -> bool + Send>;

/// The services of a feature on one worker.
#[derive(Default)]
pub struct FeatureServices {
    /// Routes of the services that are on, by name.
    pub routes: Vec<(&'static str, AddRoutes)>,
    /// Methods from bytes to bytes.
    pub hot: Vec<HotRoute>,
    /// Gets each later snapshot.
    pub follow: Option<FollowSnapshot>,
}

/// A hot method: the bytes of a message go to the bytes of the answer, without the general router.
#[derive(Clone)]
pub struct HotRoute {
    /// The path, `/package.Service/Method`.
    pub path: &'static str,
    /// The bound of its messages in bytes.
    pub largest_message: usize,
    /// Begins a call: one virtual call per request.
    pub begin: BeginHotCall,
}

/// Begins a call of a hot method.
pub type BeginHotCall = Arc<dyn Fn(IncomingCall) -> Call + Send + Sync>;

pub(crate) fn methods(features: FeatureList) -> KnownMethods {
    let services = features.iter().flat_map(|feature| feature.services());
    KnownMethods::new(services.flat_map(|service| service.methods))
}
