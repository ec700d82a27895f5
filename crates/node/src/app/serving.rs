//! Wiring of everything that is not generic over the store.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use weir_config::Config;
use weir_store::Store;
use weir_store::scripts::UsesInForce;

use super::background::start_background;
use super::config::WatchedConfig;
use super::credentials::WatchedCredentials;
use super::features::{self, StartedFeatures};
use super::grpc_ports::{GrpcPorts, GrpcTls};
use super::tls::Ports;
use super::{AppBase, AppError, Listeners, Timing};
use crate::access::{AccessMetrics, CallerAccess};
use crate::admin::{AdminGate, AdminPages, start_admin};
use crate::audit::AuditLog;
use crate::feature::{self, FeatureList, NodeParts, NodeShared, ServiceContext, StartWorker, Storage};
use crate::memory::give_back;
use crate::owned_thread::OwnedThread;
use crate::readiness::{Readiness, RefusedFiles};
use crate::reload::{PublishMeanings, RunningConfig, ShareMemory, SnapshotFollowers};
use crate::server::{self, LiveSnapshot, MakeStores, ShutdownSignal, StoreFiles};
use crate::service::Snapshot;
use crate::telemetry::{Metrics, log_rejected_each_minute};
use crate::watch::{WatchedFiles, watch};

pub(super) type BoxedWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Deadline of the final work at shutdown.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// A service without its store.
pub(super) struct App {
    pub(super) base: AppBase,
    pub(super) listeners: Listeners,
    pub(super) storage: Storage,
    /// Capabilities that the store's probes exercise.
    pub(super) engines: UsesInForce,
    /// Open files of the stores of all workers.
    pub(super) store_files: StoreFiles,
    /// Tells the memory store who shares it, at the start and with each snapshot.
    pub(super) share: Arc<ShareMemory>,
    /// Shows other nodes what the files say, at the start and after each reload.
    pub(super) publish: Arc<PublishMeanings>,
    /// Final work for the store, after the last answer.
    pub(super) last: BoxedWork,
}

impl App {
    /// Serves with one store from `store` per worker, and runs `background` beside them.
    pub(super) fn serve<S: Store>(
        self,
        store: MakeStores<S>,
        background: impl Future<Output = ()> + Send + 'static,
        shutdown: ShutdownSignal,
    ) -> Result<(), AppError> {
        let Self { base, mut listeners, storage, engines, mut store_files, share, publish, last } = self;
        let AppBase { config, timing, readiness, metrics, audit, live, denials_valid, features } = base;
        let (known, begun) = features;
        let access = callers(&config, &timing, (&metrics, &audit), known)?;
        let rights = access.as_ref().map(|access| access.snapshot_rights()).unwrap_or_default();
        live.replace(|before| Snapshot { rights, ..before.clone() });
        let address = listeners.grpc.local_address().unwrap_or_else(|_| config.server.listen.clone());
        let followers = SnapshotFollowers {
            metrics: metrics.clone(),
            engines,
            share,
            features: known,
            denials_valid,
            publish,
        };
        let running = RunningConfig::new(Arc::clone(&live), &config, followers);
        let ports = Ports::open(&config.server, &config.sections, &metrics)?;
        let refused = refused_files(&metrics, &readiness, known)?;
        let of_node = (&metrics, &readiness, &refused, &audit);
        let shared = shared_with_features(&timing, of_node, &running, address.to_string());
        let (store, workers) = (Arc::new(store), server::worker_count(&config.server));
        let start_worker = more_workers(&store, &live, (&metrics, &readiness, &audit), workers);
        let node = NodeParts {
            config: &config,
            metrics: &metrics,
            parts: &live.current().features,
            storage: &storage,
            shared: &shared,
            workers,
            start_worker: &start_worker,
        };
        let started =
            features::start((known, begun), &node, (&running, &live), &mut listeners, &ports.features)?;
        let StartedFeatures {
            features,
            background: of_features,
            before_calls,
            pages,
            files,
            configs,
            open_files,
        } = started;
        store_files.always += open_files;
        let of_running =
            features.iter().map(|feature| (feature.name, Arc::clone(&feature.running))).collect();
        let background = async { tokio::join!(background, join_all(of_features)).0 };
        let mut sources = ports.sources;
        sources.extend(access.clone().map(|access| boxed(WatchedCredentials(access))));
        // Before the files of features, which may be read by what the configuration says.
        sources.extend(WatchedConfig::new(&config, &running, &metrics, (access.clone(), configs)).map(boxed));
        sources.extend(files);
        let _background = in_background(sources, &timing, (background, last), (refused, audit.clone()))?;
        let _begun = StartedFeatures::begin(before_calls)?;
        let gate = AdminGate::new(access.clone(), &config.server);
        let most = config.server.limits.admin_max_connections;
        let (shown, ready) = (metrics.clone(), readiness.clone());
        let pages = AdminPages { metrics: shown, readiness: ready, features: pages };
        let start = |listener| start_admin(listener, ports.admin, most, pages, gate);
        let _admin = listeners.admin.take().map(start).transpose().map_err(AppError::Admin)?;
        let tls = GrpcTls { callers: ports.grpc, operators: ports.control };
        GrpcPorts {
            live,
            store,
            store_files,
            readiness,
            metrics,
            audit,
            access,
            features,
            running: of_running,
            known,
        }
        .serve(&config.server, listeners, tls, shutdown)
    }
}

/// Returns what starts one more worker for a feature, with a store of its own. Its number is the one after those of gRPC.
fn more_workers<S: Store>(
    store: &Arc<MakeStores<S>>,
    live: &Arc<LiveSnapshot>,
    (metrics, readiness, audit): (&Metrics, &Readiness, &AuditLog),
    worker: usize,
) -> StartWorker {
    let (store, live, metrics) = (Arc::clone(store), Arc::clone(live), metrics.clone());
    let (readiness, audit) = (readiness.clone(), audit.clone());
    Arc::new(move |start| {
        let stores = store();
        let beside = (&readiness, audit.clone());
        let context = ServiceContext::apart(worker, Arc::new(stores.decisions), &metrics, beside);
        let context = ServiceContext { scripts: stores.scripts, ..context };
        live.join(|snapshot| ((), start(&context, snapshot)));
    })
}

/// Starts the thread of work that no worker does: `background`, watched files and what comes each minute; and `last` when
/// it ends.
fn in_background(
    sources: Vec<Box<dyn WatchedFiles>>,
    timing: &Timing,
    (background, last): (impl Future<Output = ()> + Send + 'static, BoxedWork),
    (refused, audit): (RefusedFiles, AuditLog),
) -> Result<OwnedThread, AppError> {
    let watched = watch(sources, timing.poll_every, timing.reloads.clone(), refused);
    let lines = async { tokio::join!(log_rejected_each_minute(), audit.count_left_out()) };
    let all = async { tokio::join!(background, watched, give_back(), lines).0 };
    start_background("weir-background", all, (last, LAST_WITHIN)).map_err(AppError::Background)
}

/// Shows which files are refused, on the metrics page and in `/readyz`.
fn refused_files(
    metrics: &Metrics,
    readiness: &Readiness,
    features: FeatureList,
) -> Result<RefusedFiles, AppError> {
    let refused = RefusedFiles::knowing(features.iter().flat_map(|feature| feature.files()).copied());
    let (counted, noted) = (refused.clone(), refused.clone());
    metrics.show_refused_files(move || counted.counts())?;
    readiness.notes_also(move || noted.notes());
    Ok(refused)
}

/// Creates the rights of callers, if the server has identity, and shows what is refused.
fn callers(
    config: &Config,
    timing: &Timing,
    (metrics, audit): (&Metrics, &AuditLog),
    features: FeatureList,
) -> Result<Option<Arc<CallerAccess>>, AppError> {
    let refusals = Arc::new(AccessMetrics::audited(audit.clone()));
    let methods = feature::methods(features);
    let access = CallerAccess::knowing(config, timing.clock.clone(), Arc::clone(&refusals), methods)?;
    if access.is_some() {
        metrics.show_refusals(move || refusals.counts())?;
    }
    Ok(access)
}

fn shared_with_features(
    timing: &Timing,
    (metrics, readiness, refused, audit): (&Metrics, &Readiness, &RefusedFiles, &AuditLog),
    running: &RunningConfig,
    address: String,
) -> NodeShared {
    NodeShared {
        clock: timing.clock.clone(),
        audit: audit.clone(),
        target: Arc::new(running.clone()),
        reloads: timing.reloads.clone(),
        loads: metrics.config().clone(),
        refused: refused.clone(),
        readiness: readiness.clone(),
        address,
    }
}

fn boxed(files: impl WatchedFiles) -> Box<dyn WatchedFiles> {
    Box::new(files)
}
