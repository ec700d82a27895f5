//! Wiring: a configuration and sockets in, a running service out.

mod background;
mod credentials;
mod envoy;
mod listeners;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use weir_config::{Config, DecisionLogConfig, EnvoyErrors, ListenAddress, StoreConfig};
use weir_core::envoy::Domains;
use weir_core::key::KeySecret;
use weir_core::strategy::Rules;
use weir_store::coalesce::Coalesce;
use weir_store::denials::DenialsShared;
use weir_store::memory::MemoryStore;
use weir_store::redis::{EngineSet, EnginesInUse, RedisShared, UsageLink};
use weir_store::{LeaseHandle, QueueHandle, Store};
use weir_time::clock::{Clock, Monotonic};
use weir_units::Micros;

use self::background::BackgroundThread;
use self::credentials::WatchedCredentials;
use self::envoy::WatchedRules;
pub use self::listeners::Listeners;
pub use self::tls::PortTlsError;
use self::tls::Ports;
use crate::access::{AccessMetrics, CallerAccess, CredentialFault};
use crate::admin::{Admin, AdminGate};
use crate::generation::Generation;
use crate::memory::give_back;
use crate::queues::{SharedQueues, kinds};
use crate::ratelimit::{JsonParts, MAX_CONNECTIONS, PageParts, RatelimitHttp};
use crate::readiness::Readiness;
use crate::server::{self, MakeIntercept, MakeStores, Parts, ServerError, ShutdownSignal, WorkerStores};
use crate::service::Templates;
use crate::telemetry::{DecisionLog, DecisionLogError, Metrics};
use crate::usage::UsageThread;
use crate::watch::{LOOK_EVERY, WatchedFiles, watch};

/// Interval of the sweep of expired memory keys.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long a shutdown waits for the decision log to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Why a service could not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A socket cannot be opened.
    #[error("cannot listen on {address} ({what}): {error}")]
    Bind {
        /// The purpose of the socket.
        what: &'static str,
        /// The address that was tried.
        address: ListenAddress,
        /// Why it failed.
        error: io::Error,
    },
    /// The metrics contradict one another.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The files of Envoy's rate limits have mistakes.
    #[error("the files of Envoy's rate limits have mistakes:\n{0}")]
    Envoy(#[from] EnvoyErrors),
    /// Files of TLS are mistaken.
    #[error("TLS cannot be served: {0}")]
    Tls(#[from] PortTlsError),
    /// The decision log cannot be written.
    #[error(transparent)]
    DecisionLog(#[from] DecisionLogError),
    /// The files of tokens and keys have mistakes.
    #[error("the files of credentials have mistakes: {0}")]
    Credentials(#[from] CredentialFault),
    /// The admin thread cannot start.
    #[error("the admin server cannot start: {0}")]
    Admin(io::Error),
    /// The thread that watches the store and the files cannot start.
    #[error("the thread that watches the store and the files cannot start: {0}")]
    Background(io::Error),
    /// The thread that keeps the history of decisions cannot start.
    #[error("the thread that keeps the history of decisions cannot start: {0}")]
    Usage(io::Error),
    /// The gRPC server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// What a service knows of time. Tests have others.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The clock of the decisions.
    pub clock: Clock,
    /// The interval at which files are looked at for changes.
    pub look_every: Duration,
}

impl From<Clock> for Timing {
    fn from(clock: Clock) -> Self {
        Self { clock, look_every: LOOK_EVERY }
    }
}

/// Serves until `shutdown`, then until the calls in flight have finished. Blocks its thread.
pub fn run(
    config: Config,
    listeners: Listeners,
    timing: impl Into<Timing>,
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    let timing = timing.into();
    let readiness = Readiness::starting(config.server.ready_needs_store);
    if config.server.ratelimit.is_some() && !config.server.ready_needs_store {
        // A liveness probe asks for /healthcheck: it does not wait for Redis.
        readiness.set(Ok(()));
    }
    let metrics = Metrics::register(&Registry::new(), &config.rules)?;
    let log = open_log(&config.decision_log, &metrics, &timing.clock)?;
    let served = serve(config, listeners, timing, readiness, metrics, shutdown);
    if let Some(log) = log {
        log.flush(LAST_LINES);
    }
    served
}

fn open_log(
    config: &DecisionLogConfig,
    metrics: &Metrics,
    clock: &Clock,
) -> Result<Option<Arc<DecisionLog>>, AppError> {
    if config.is_off() {
        return Ok(None);
    }
    let log = DecisionLog::open(config, clock.clone())?;
    metrics.log_decisions(&log)?;
    Ok(Some(log))
}

/// Serves by what `config` says of the store.
fn serve(
    config: Config,
    listeners: Listeners,
    Timing { clock, look_every }: Timing,
    readiness: Readiness,
    metrics: Metrics,
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    let queues = Arc::new(SharedQueues::new(config.queues.clone()));
    metrics.show_queues(queues.metrics())?;
    match &config.store {
        StoreConfig::Memory(memory) => {
            let store = MemoryStore::new(memory, clock.clone());
            if !queues.is_empty() {
                tracing::warn!(
                    "queues are kept in memory: what is in them lives as long as this process; store.redis keeps it"
                );
            }
            let (shown, swept) = (store.clone(), store.clone());
            metrics.show_memory(move || shown.stats())?;
            readiness.set(Ok(()));
            let engines = EnginesInUse::default();
            let (shared, rules) = (store.clone(), config.rules.clone());
            let share = Box::new(move |domains: Option<&Domains>| share_among(&shared, &rules, domains));
            let asked = store.clone();
            let depths = Arc::clone(&queues).watch_depths(QueueHandle::new(asked));
            let swept = async { tokio::join!(sweep(swept), depths).0 };
            let app = App {
                config,
                listeners,
                readiness,
                metrics,
                queues,
                clock,
                look_every,
                usage_link: None,
                engines,
                store_files: 0,
                share,
            };
            let stores = move || WorkerStores {
                decisions: store.clone(),
                leases: Some(LeaseHandle::new(store.clone())),
                queues: Some(QueueHandle::new(store.clone())),
            };
            app.serve(Box::new(stores), swept, shutdown)
        }
        StoreConfig::Redis(redis) => {
            let secret = config.key_secret.unwrap_or(KeySecret::BUILT_IN);
            let denials = DenialsShared::new(redis.denials_max_age, Monotonic::of(&clock));
            let shared = RedisShared::new(redis, secret, clock.clone());
            let redis = redis.clone();
            let counted = shared.clone();
            metrics.show_redis(move || counted.single_slot_calls())?;
            let engines = EnginesInUse::default();
            let has_leases = config.rules.has_leases();
            // Queues have connections of their own: their payloads must not hold decisions up.
            let has_queues = !queues.is_empty();
            let used = config.rules.engines().collect::<EngineSet>().with_leases(has_leases);
            engines.set_strategies(used.with_queues(has_queues).with_usage(config.usage.shared));
            metrics.show_store(shared.health().clone())?;
            let watch = watch_over(shared.clone(), engines.clone(), readiness.clone());
            let (asked, watched) = (shared.clone(), Arc::clone(&queues));
            let watch = async move {
                // Its connection begins on the thread that asks.
                let looks = async {
                    if has_queues {
                        let store = QueueHandle::new(asked.store());
                        let kinds = kinds::watch(store.clone(), Arc::clone(&watched));
                        tokio::join!(Arc::clone(&watched).watch_depths(store), kinds);
                    }
                };
                tokio::join!(watch, looks).0
            };
            let store_files = redis.open_files(server::worker_count(&config.server))
                * (1 + usize::from(has_queues))
                + redis.open_files(usize::from(has_queues));
            let share = Box::new(|_: Option<&Domains>| ());
            let app = App {
                config,
                listeners,
                readiness,
                metrics,
                queues,
                clock,
                look_every,
                usage_link: Some(Box::new({
                    let shared = shared.clone();
                    move || shared.usage()
                })),
                engines,
                store_files,
                share,
            };
            let stores = move || {
                let store = shared.store();
                let leases = Some(LeaseHandle::new(store.clone()));
                let queues = if has_queues { shared.store() } else { store.clone() };
                let queues = Some(QueueHandle::new(queues));
                WorkerStores { decisions: Coalesce::before(denials.before(store), &redis), leases, queues }
            };
            app.serve(Box::new(stores), watch, shutdown)
        }
    }
}

/// A service without its store.
struct App {
    config: Config,
    listeners: Listeners,
    readiness: Readiness,
    metrics: Metrics,
    /// Clock of the decisions.
    clock: Clock,
    /// Interval of looks at files.
    look_every: Duration,
    /// Creates this node's link to the usage of other nodes.
    usage_link: Option<Box<dyn Fn() -> UsageLink>>,
    queues: Arc<SharedQueues>,
    /// Engines that the store's probes exercise.
    engines: EnginesInUse,
    /// Bound of open files for the stores of all workers.
    store_files: usize,
    /// Tells the memory store which strategies and domains share it, at the start and after each reload of Envoy's
    /// files.
    share: ShareMemory,
}

/// See [`App::share`].
type ShareMemory = Box<dyn Fn(Option<&Domains>) + Send + Sync>;

impl App {
    /// Serves with one store from `store` per worker, and runs `background` beside them.
    fn serve<S: Store>(
        self,
        store: MakeStores<S>,
        background: impl Future<Output = ()> + Send + 'static,
        shutdown: ShutdownSignal,
    ) -> Result<(), AppError> {
        let Self {
            config,
            listeners,
            readiness,
            metrics,
            queues,
            clock,
            look_every,
            usage_link,
            engines,
            store_files,
            share,
        } = self;
        let refusals = Arc::new(AccessMetrics::default());
        let access = CallerAccess::of(&config, clock.clone(), Arc::clone(&refusals))?;
        if access.is_some() {
            metrics.show_refusals(move || refusals.counts())?;
        }
        let workers = server::worker_count(&config.server);
        let counted = metrics.envoy(workers + usize::from(listeners.ratelimit.is_some()))?;
        let denials_valid = match &config.store {
            StoreConfig::Memory(_) => Micros::from_secs(1),
            StoreConfig::Redis(redis) => redis.denials_max_age,
        };
        let usage = UsageThread::start(&config.usage, metrics.clone(), clock, usage_link.as_deref())
            .map_err(AppError::Usage)?;
        let (envoy, files) = envoy::open(&config.envoy, counted, &engines, &share)?;
        let rules = files.map(|source| WatchedRules { source, parts: envoy.clone(), engines, share });
        let generation = Generation::default();
        let ports = Ports::open(&config.server, &metrics, &generation)?;
        let mut sources = ports.sources;
        sources.extend(rules.map(|rules| Box::new(rules) as Box<dyn WatchedFiles>));
        let credentials = access.clone().map(WatchedCredentials);
        sources.extend(credentials.map(|credentials| Box::new(credentials) as Box<dyn WatchedFiles>));
        let watched = watch(sources, look_every);
        let background = async { tokio::join!(background, watched, give_back()).0 };
        let background = BackgroundThread::start(background);
        let _background = background.map_err(AppError::Background)?;
        let gate = AdminGate::new(access.clone(), &config.server);
        let start = |listener| {
            Admin::start(
                listener,
                ports.admin,
                config.server.limits.admin_max_connections,
                metrics.clone(),
                readiness.clone(),
                Some(usage.handle()),
                Arc::clone(&gate),
            )
        };
        let _admin = listeners.admin.map(start).transpose().map_err(AppError::Admin)?;
        let (rules, store) = (Arc::new(config.rules), Arc::new(store));
        let templates = Arc::new(Templates::new(&config.messages).with_denials_valid_for(denials_valid));
        let pages = config.server.ratelimit.as_ref().zip(listeners.ratelimit);
        let page_files = if pages.is_some() { MAX_CONNECTIONS } else { 0 };
        let start = |(ports, listeners)| {
            let parts = PageParts {
                ports,
                server: &config.server,
                readiness: readiness.clone(),
                gate: Arc::clone(&gate),
            };
            let store = Arc::clone(&store);
            let json = JsonParts {
                rules: Arc::clone(&rules),
                templates: Arc::clone(&templates),
                store: Box::new(move || store()),
                metrics: metrics.clone(),
                envoy: envoy.clone(),
                worker: workers,
            };
            RatelimitHttp::start(listeners, parts, json)
        };
        let _pages = pages.map(start).transpose().map_err(AppError::Admin)?;
        let parts = Parts {
            rules,
            templates,
            store: Box::new(move || store()),
            store_files: store_files + page_files,
            readiness,
            queues,
            metrics,
            envoy,
            usage: config.usage.service.then(|| usage.handle()),
            tls: ports.grpc,
            intercept: access.map(|access| -> MakeIntercept { Box::new(move || access.intercept()) }),
        };
        Ok(server::run(&config.server, listeners.grpc, parts, shutdown)?)
    }
}

/// Discovers and probes Redis' nodes, and reports the result to readiness.
async fn watch_over(shared: RedisShared, engines: EnginesInUse, readiness: Readiness) {
    let health = shared.health();
    let mut changes = health.changes();
    let report = async {
        while changes.changed().await.is_ok() {
            readiness.report(health.status());
        }
    };
    tokio::join!(shared.monitor(&engines), report);
}

/// Shares the memory among strategies, and Envoy's domains if there are any.
fn share_among(store: &MemoryStore, rules: &Rules, domains: Option<&Domains>) {
    let domains = domains.into_iter().flat_map(Domains::iter).map(|domain| &**domain.owner());
    store.share_among(rules.owners().chain(domains));
}

/// Drops expired memory keys, so that they do not take up the budget.
async fn sweep(store: MemoryStore) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        store.sweep();
    }
}
