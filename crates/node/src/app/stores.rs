//! Wiring of the store: the backend that the configuration names, and what watches over it. Nothing else in a node names a
//! backend.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use weir_config::{StoreConfig, StrategyMeanings};
use weir_core::key::KeySecret;
use weir_core::strategy::{Owner, Rules};
use weir_store::approximate::ApproximateShared;
use weir_store::backend::{Backend, RulesDigest};
use weir_store::memory::MemoryStore;
use weir_store::redis::{RedisBackend, RedisShared};
use weir_store::scripts::UsesInForce;
use weir_time::clock::monotonic;

use super::place_note::without_place;
use super::serving::{App, BoxedWork};
use super::{AppBase, AppError, Listeners};
use crate::feature::{ReadStats, Storage};
use crate::feature_parts::FeatureParts;
use crate::readiness::Readiness;
use crate::reload::{PublishMeanings, ShareMemory};
use crate::server::{self, ShutdownSignal, StoreFiles, WorkerStores};

pub(super) fn serve(base: AppBase, listeners: Listeners, shutdown: ShutdownSignal) -> Result<(), AppError> {
    let clock = base.timing.clock.clone();
    match &base.config.store {
        StoreConfig::Memory(memory) => {
            serve_on_own(&MemoryStore::new(memory, clock), (base, listeners), shutdown)
        }
        StoreConfig::Redis(redis) => {
            let secret = base.config.key_secret.unwrap_or(KeySecret::BUILT_IN);
            let shared = RedisShared::new(redis, secret, clock.clone());
            let (approximate, engines) = (ApproximateShared::new(redis, &clock), UsesInForce::default());
            let layers = (approximate.clone(), engines.clone());
            let backend = RedisBackend::new(shared.clone(), redis, &clock, layers);
            let counters = NodeCounters::new(&base, approximate, &shared)?;
            serve_on(&backend, (base, listeners), engines, counters, shutdown)
        }
    }
}

/// Serves on a backend that has nothing in front of it.
pub(super) fn serve_on_own(
    backend: &impl Backend,
    app: (AppBase, Listeners),
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    serve_on(backend, app, UsesInForce::default(), NodeCounters::none(), shutdown)
}

fn serve_on(
    backend: &impl Backend,
    (base, listeners): (AppBase, Listeners),
    engines: UsesInForce,
    NodeCounters { kept, last }: NodeCounters,
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    base.metrics.show_backend(backend)?;
    let watch = watch_over(backend.clone(), base.readiness.clone());
    let background = async { tokio::join!(watch, kept).0 };
    let workers = server::worker_count(&base.config.server);
    let counted = backend.clone();
    let stats: Option<ReadStats> = Some(Arc::new(move || counted.stats()));
    let storage = Storage { scripts: backend.scripts(), process: backend.process(), stats };
    let store_files = StoreFiles {
        always: backend.open_files(workers),
        of_feature: backend.open_files(workers) + backend.open_files(1),
    };
    let shared = backend.clone();
    let share: Arc<ShareMemory> = Arc::new(move |rules, parts| share_among(&shared, rules, parts));
    let publish = published_by(backend.clone(), &base.config.node_name());
    let app = App { base, listeners, storage, engines, store_files, share, publish, last };
    let backend = backend.clone();
    let stores = move || {
        let worker = backend.worker();
        let decisions = backend.decisions(&worker);
        WorkerStores { decisions, scripts: backend.scripts_of(&worker) }
    };
    app.serve(Box::new(stores), background, shutdown)
}

/// Publishes what the files say of each strategy to other nodes. Two processes may have the same node name, so a random number
/// is part of this one's.
fn published_by(backend: impl Backend, node: &str) -> Arc<PublishMeanings> {
    let node = format!("{node}-{:016x}", RandomState::new().hash_one(node));
    Arc::new(move |meanings: &StrategyMeanings| {
        let strategies = meanings.iter().map(|(name, hash)| (name.to_owned(), hash)).collect();
        backend.publish_rules(RulesDigest { node: node.clone(), strategies });
    })
}

/// Runs the backend's own work, and reports its health to readiness. A backend that can always decide is ready at once.
fn watch_over(backend: impl Backend, readiness: Readiness) -> impl Future<Output = ()> + Send {
    let changes = backend.status_changes();
    if changes.is_none() {
        readiness.set(Ok(()));
    }
    async move {
        let report = async {
            let Some(mut changes) = changes else { return };
            while changes.changed().await.is_ok() {
                readiness.report(backend.status());
            }
        };
        tokio::join!(backend.run(), report);
    }
}

/// Background work for the counters of the node itself, and their end after the last answer.
struct NodeCounters {
    kept: BoxedWork,
    last: BoxedWork,
}

impl NodeCounters {
    /// None: the backend is in this process.
    fn none() -> Self {
        Self { kept: Box::pin(async {}), last: Box::pin(async {}) }
    }

    /// Creates the counters, which the metrics page and `/readyz` show.
    fn new(base: &AppBase, approximate: ApproximateShared, shared: &RedisShared) -> Result<Self, AppError> {
        let counted = approximate.clone();
        base.metrics.show_approximate(move || counted.stats())?;
        let (noted, live) = (approximate.clone(), Arc::clone(&base.live));
        base.readiness.notes_also(move || {
            let parts = live.current().features;
            let note = |note| without_place(note, |strategy| parts.called(strategy), monotonic());
            noted.notes().into_iter().map(note).collect()
        });
        // Its connections begin with the first strategy that nodes count.
        let counts = shared.lazy_store();
        let (kept, kept_by, live) = (approximate.clone(), counts.clone(), Arc::clone(&base.live));
        let kept = async move { kept.keep(kept_by, || live.current().approximate()).await };
        let last = async move { approximate.finish(counts).await };
        Ok(Self { kept: Box::pin(kept), last: Box::pin(last) })
    }
}

/// Shares the budget of states among strategies, and the owners of features' limits.
fn share_among(backend: &impl Backend, rules: &Rules, parts: &FeatureParts) {
    let of_features = parts.limits().flat_map(|limits| &limits.owners).map(|owner| -> &Owner { owner });
    backend.share_among(rules.owners().chain(of_features));
}
