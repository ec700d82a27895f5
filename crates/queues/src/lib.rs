//! Queues: work that waits for workers, within bounds.
//!
//! ```text
//!   service ── messages ⇄ calls ── finds the queue, asks the store, lets takers wait ── store ─┬─ scripts: lua/queues/
//!       └─ QueueService, QueueAdminService    └─ metrics                                       └─ memory: this process
//! ```
//!
//! `model` says what a queue is, `settings` reads the section of the file.

pub mod calls;
mod metrics;
pub mod model;
mod service;
mod settings;
pub mod store;

use std::sync::Arc;

use weir_config::AccessRight::{Enqueue, Inspect, Reset, Take};
use weir_config::Config;
use weir_node::feature::{
    Feature, FeatureServices, FollowSnapshot, MethodSpec, NodeBuilder, RunningFeature, ServiceContext,
    ServiceSpec, SettingsSpec, StartError, Storage, UsedScripts,
};
use weir_node::feature_parts::{FeaturePart, FeatureParts};
use weir_node::service::Snapshot;
use weir_proto::v1::{queue_admin_service_server, queue_service_server};
use weir_store::scripts::ScriptClient;

use self::calls::{CurrentQueues, Queues, SharedQueues, depths, kinds};
use self::service::WorkerQueues;
use self::settings::{MAX_QUEUE_MESSAGE, SECTION};
pub use self::settings::{configured_queues, with_queues};
use self::store::{ProcessQueues, QUEUES, QUEUES_THAT_DROP, QueueHandle};

/// The name of the feature.
const NAME: &str = "queues";

/// The feature `queues`.
#[derive(Debug)]
pub struct QueuesFeature;

/// The scripts, with the configurations that need them.
static SCRIPTS: [UsedScripts; 2] = [
    (&QUEUES, |snapshot| !queues_of(&snapshot.features).is_empty()),
    (&QUEUES_THAT_DROP, |snapshot| queues_of(&snapshot.features).reads_groups()),
];

/// Queues, once they run.
struct RunningQueues(QueueStates);

/// Storage of queues.
#[derive(Clone)]
enum QueueStates {
    Scripts(ScriptClient),
    Process(ProcessQueues),
}

impl Feature for QueuesFeature {
    fn name(&self) -> &'static str {
        NAME
    }

    fn settings(&self) -> SettingsSpec {
        SettingsSpec { sections: &[SECTION] }
    }

    fn services(&self) -> &'static [ServiceSpec] {
        const CALLS: ServiceSpec = ServiceSpec {
            methods: &[
                MethodSpec::new("/weir.v1.QueueService/Enqueue", &[Enqueue]),
                MethodSpec::new("/weir.v1.QueueService/Take", &[Take]),
                MethodSpec::new("/weir.v1.QueueService/Subscribe", &[Take]),
                MethodSpec::new("/weir.v1.QueueService/Ack", &[Take]),
                MethodSpec::new("/weir.v1.QueueService/Nack", &[Take]),
                MethodSpec::new("/weir.v1.QueueService/Extend", &[Take]),
                MethodSpec::new("/weir.v1.QueueService/Outcomes", &[Enqueue, Take]),
                MethodSpec::new("/weir.v1.QueueService/Stats", &[Enqueue, Take]),
                MethodSpec::new("/weir.v1.QueueService/Browse", &[Inspect]),
            ],
            streams: &[("/weir.v1.QueueService/Subscribe", 8 << 10)],
            // A reload may add the first queue.
            largest_message: MAX_QUEUE_MESSAGE,
            ..ServiceSpec::new(
                queue_service_server::SERVICE_NAME,
                "QueueService is there if the configuration has `queues`",
            )
        };
        const OPERATORS: ServiceSpec = ServiceSpec {
            methods: &[
                MethodSpec::new("/weir.v1.QueueAdminService/Redrive", &[Reset]),
                MethodSpec::new("/weir.v1.QueueAdminService/Purge", &[Reset]),
            ],
            ..ServiceSpec::new(
                queue_admin_service_server::SERVICE_NAME,
                "QueueAdminService is there with `server.admin_service: true`",
            )
        };
        &[CALLS, OPERATORS]
    }

    fn scripts(&self) -> &'static [UsedScripts] {
        &SCRIPTS
    }

    fn prepare(
        &self,
        next: &Config,
        previous: Option<&FeaturePart>,
    ) -> Result<Option<FeaturePart>, Vec<String>> {
        let before: Arc<SharedQueues> = previous.and_then(FeaturePart::get).unwrap_or_default();
        let queues = before.reconfigured(configured_queues(next));
        let is_used = !queues.is_empty();
        Ok(Some(FeaturePart::new(Arc::new(queues)).with_connections(is_used)))
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        let queues = queues_of(node.parts);
        let Some(states) = QueueStates::new(node.storage) else {
            return without_states(&queues, &mut node.followers);
        };
        let is_of_process = matches!(states, QueueStates::Process(_));
        if is_of_process && !queues.is_empty() {
            tracing::warn!(
                "queues are in memory; their items are lost when this process ends. `store.redis` keeps them"
            );
        }
        node.show(queues.metrics().collector()?)?;
        node.pages.cards.push(&metrics::CARD);
        let current = CurrentQueues::new(queues.into());
        let followed = Arc::clone(&current);
        node.followers.push(Box::new(move |snapshot| {
            followed.store(queues_of(&snapshot.features));
            true
        }));
        // The connection of the looks begins on the thread that asks, with the first queue.
        let store = states.lazy();
        node.background.push(Box::pin(depths::watch(store.clone(), Arc::clone(&current))));
        if !is_of_process {
            node.background.push(Box::pin(kinds::watch(store, current)));
        }
        Ok(Some(Arc::new(RunningQueues(states))))
    }
}

impl RunningFeature for RunningQueues {
    fn services(&self, worker: &ServiceContext, snapshot: &Snapshot) -> FeatureServices {
        let queues = queues_of(&snapshot.features);
        // Queues have connections of their own: their payloads must not hold decisions up.
        let store = if queues.is_empty() { self.0.lazy() } else { self.0.open() };
        let queues = Queues::new(queues, store, Arc::clone(&worker.counters), worker.state.clone());
        let queues = queues.with_reserve(snapshot.reserve);
        let queues = queues.with_snapshot(queues_of(&snapshot.features), snapshot.rights.clone());
        let queues = WorkerQueues::new(Arc::new(queues).into());
        let followed = Arc::downgrade(&queues);
        let follow = move |snapshot: &Snapshot| {
            let Some(queues) = followed.upgrade() else { return false };
            let next = queues.load().with_snapshot(queues_of(&snapshot.features), snapshot.rights.clone());
            queues.store(Arc::new(next));
            true
        };
        let routes = service::routes(queues, worker);
        FeatureServices { routes, follow: Some(Box::new(follow)), ..FeatureServices::default() }
    }
}

impl QueueStates {
    fn new(storage: &Storage) -> Option<Self> {
        let process =
            storage.process.as_ref().map(|states| Self::Process(ProcessQueues::new(states.clock())));
        process.or_else(|| storage.scripts.clone().map(Self::Scripts))
    }

    /// Opens a worker's access, within its runtime.
    fn open(&self) -> QueueHandle {
        match self {
            Self::Scripts(scripts) => QueueHandle::Scripts(scripts.connections()),
            Self::Process(queues) => QueueHandle::Process(queues.clone()),
        }
    }

    /// Opens a worker's access at the first call.
    fn lazy(&self) -> QueueHandle {
        match self {
            Self::Scripts(scripts) => QueueHandle::Scripts(scripts.lazy_connections()),
            Self::Process(queues) => QueueHandle::Process(queues.clone()),
        }
    }
}

/// Starts on a store that can keep no queues, as long as there are none. Those of a later file are refused call by call.
fn without_states(
    queues: &SharedQueues,
    followers: &mut Vec<FollowSnapshot>,
) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
    const WHY: &str = "the store can keep no queues: it runs no scripts, and is not this process";
    if !queues.is_empty() {
        return Err(StartError::Other(WHY.into()));
    }
    followers.push(Box::new(|snapshot| {
        if !queues_of(&snapshot.features).is_empty() {
            tracing::error!("queues are not served; {WHY}");
        }
        true
    }));
    Ok(None)
}

/// The queues of a snapshot.
fn queues_of(parts: &FeatureParts) -> Arc<SharedQueues> {
    parts.get(NAME).unwrap_or_default()
}
