//! Wiring of everything that is not generic over the store.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use weir_config::Config;
use weir_store::Store;
use weir_store::scripts::UsesInForce;

use super::background::BackgroundThread;
use super::config::WatchedConfig;
use super::credentials::WatchedCredentials;
use super::features::{self, StartedFeatures};
use super::grpc_ports::{GrpcPorts, GrpcTls};
use super::overlay::OverlayInUse;
use super::tls::Ports;
use super::xds::XdsThread;
use super::{AppError, Foundation, Listeners, Timing, envoy};
use crate::access::{AccessMetrics, CallerAccess};
use crate::admin::{Admin, AdminGate, AdminPages};
use crate::audit::AuditLog;
use crate::feature::{self, FeatureList, FixedSettings, NodeShared, Storage};
use crate::memory::give_back;
use crate::ratelimit::{JsonParts, PageParts, RatelimitHttp};
use crate::readiness::{Readiness, RefusedFiles};
use crate::reload::{PublishMeanings, RunningConfig, ShareMemory, SnapshotFollowers};
use crate::server::{self, MakeStores, ShutdownSignal, StoreFiles};
use crate::service::Snapshot;
use crate::telemetry::{Metrics, log_rejected_each_minute};
use crate::watch::{WatchedFiles, watch};

/// Work of the background thread.
pub(super) type BoxedWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How long a node that ends takes for what is left to do.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// A service without its store.
pub(super) struct App {
    pub(super) base: Foundation,
    pub(super) listeners: Listeners,
    /// Where features keep their data.
    pub(super) storage: Storage,
    /// Capabilities that the store's probes exercise.
    pub(super) engines: UsesInForce,
    /// Open files of the stores of all workers.
    pub(super) store_files: StoreFiles,
    /// Tells the memory store who shares it, at the start and with each snapshot.
    pub(super) share: Arc<ShareMemory>,
    /// Shows other nodes what the files say, at the start and after each reload.
    pub(super) publish: Arc<PublishMeanings>,
    /// What is left to do for the store when all calls have been answered.
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
        let Foundation { config, timing, readiness, metrics, audit, live, denials_valid, xds, features } =
            base;
        let access = callers(&config, &timing, (&metrics, &audit), features)?;
        let rights = access.as_ref().map(|access| access.snapshot_rights()).unwrap_or_default();
        live.replace(|before| Snapshot { rights, ..before.clone() });
        let workers = server::worker_count(&config.server);
        let counted = metrics.envoy(workers + usize::from(listeners.ratelimit.is_some()))?;
        if config.envoy.reference_metrics {
            metrics.show_reference(&counted)?;
        }
        let address = listeners.grpc.local_address().unwrap_or_else(|_| config.server.listen.clone());
        let mut files = envoy::open(&config.envoy, counted, &engines)?;
        if let Some(loaded) = files.loaded.take() {
            live.replace(|before| Snapshot { envoy: Some(loaded), ..before.clone() });
        }
        let followers = SnapshotFollowers {
            metrics: metrics.clone(),
            engines,
            share,
            features,
            settings: FixedSettings::from(&config),
            denials_valid,
            publish,
        };
        let running = RunningConfig::new(Arc::clone(&live), &config, followers);
        let overrides_in_request = config.envoy.overrides_in_request;
        let ports = Ports::open(&config.server, &config.sections, &metrics)?;
        let refused = refused_files(&metrics, &readiness)?;
        let known = features;
        let node = (&config, &metrics, &*live, &storage);
        let of_node = (&metrics, &readiness, &refused, &audit);
        let shared = shared_with_features(&timing, of_node, &running, address.to_string());
        let features = features::start(known, node, &shared, &mut listeners, &ports.features)?;
        let StartedFeatures { features, background: of_features, before_calls, pages, open_files } = features;
        store_files.always += open_files;
        let of_running = features.iter().map(|feature| Arc::clone(&feature.running)).collect();
        let background = async { tokio::join!(background, join_all(of_features)).0 };
        let mut sources = ports.sources;
        let overlay = OverlayInUse::new(&config.envoy.rules, xds.as_ref().map(XdsThread::sets));
        let rules = files.watched(&running, &overlay).map(boxed);
        sources.extend(access.clone().map(|access| boxed(WatchedCredentials(access))));
        // Before Envoy's files, which are read under its overlay.
        sources.extend(WatchedConfig::new(&config, &running, &metrics, (access.clone(), overlay)).map(boxed));
        sources.extend(rules);
        let _background = in_background(sources, &timing, (background, last), (refused, audit.clone()))?;
        if let Some(xds) = &xds {
            xds.serve(&metrics, &running, &files.parts.metrics, overrides_in_request)?;
        }
        let _begun = StartedFeatures::begin(before_calls)?;
        let gate = AdminGate::new(access.clone(), &config.server);
        let most = config.server.limits.admin_max_connections;
        let (shown, ready) = (metrics.clone(), readiness.clone());
        let pages = AdminPages { metrics: shown, readiness: ready, features: pages };
        let start = |listener| Admin::start(listener, ports.admin, most, pages, gate);
        let _admin = listeners.admin.take().map(start).transpose().map_err(AppError::Admin)?;
        let store = Arc::new(store);
        let pages = config.server.ratelimit.as_ref().zip(listeners.ratelimit.take());
        let start = |(ports, listeners)| {
            let server = &config.server;
            let parts = PageParts { ports, server, readiness: readiness.clone(), gate: AdminGate::open() };
            let (live, store, metrics) = (Arc::clone(&live), Arc::clone(&store), metrics.clone());
            let json = JsonParts { live, store, metrics, envoy: files.parts.clone(), worker: workers };
            RatelimitHttp::start(listeners, parts, json)
        };
        let _pages = pages.map(start).transpose().map_err(AppError::Admin)?;
        let envoy = files.parts;
        let tls = GrpcTls { callers: ports.grpc, operators: ports.control };
        GrpcPorts {
            live,
            store,
            store_files,
            readiness,
            metrics,
            audit,
            envoy,
            access,
            features,
            running: of_running,
            known,
        }
        .serve(&config.server, listeners, tls, shutdown)
    }
}

/// Starts the thread of work that no worker does: `background`, watched files and what comes each minute; and `last` when it ends.
fn in_background(
    sources: Vec<Box<dyn WatchedFiles>>,
    timing: &Timing,
    (background, last): (impl Future<Output = ()> + Send + 'static, BoxedWork),
    (refused, audit): (RefusedFiles, AuditLog),
) -> Result<BackgroundThread, AppError> {
    let watched = watch(sources, timing.look_every, timing.reloads.clone(), refused);
    let lines = async { tokio::join!(log_rejected_each_minute(), audit.count_left_out()) };
    let all = async { tokio::join!(background, watched, give_back(), lines).0 };
    BackgroundThread::start("weir-background", all, (last, LAST_WITHIN)).map_err(AppError::Background)
}

/// Shows which files are refused, on the metrics page and in `/readyz`.
fn refused_files(metrics: &Metrics, readiness: &Readiness) -> Result<RefusedFiles, AppError> {
    let refused = RefusedFiles::default();
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

/// Returns what features share with the node.
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
