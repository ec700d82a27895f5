//! Wiring of the stores: what the configuration says of them, and what watches over them.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use weir_config::{RedisConfig, StoreConfig, StrategyMeanings};
use weir_core::envoy::Domains;
use weir_core::key::KeySecret;
use weir_core::strategy::Rules;
use weir_store::approximate::ApproximateShared;
use weir_store::coalesce::Coalesce;
use weir_store::denials::DenialsShared;
use weir_store::local::LocalShared;
use weir_store::memory::MemoryStore;
use weir_store::redis::{EnginesInUse, RedisShared, RulesDigest, StoreHealth};
use weir_store::{LeaseHandle, QueueHandle};
use weir_time::clock::{Monotonic, monotonic};

use super::place_note::without_place;
use super::serving::{App, BoxedWork};
use super::{AppError, Foundation, Listeners};
use crate::queues::{depths, kinds};
use crate::readiness::Readiness;
use crate::reload::{PublishMeanings, ShareMemory};
use crate::server::{self, ShutdownSignal, StoreFiles, WorkerStores};

/// Interval of the sweep of expired memory keys.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Serves by what the configuration says of the store.
pub(super) fn serve(
    base: Foundation,
    listeners: Listeners,
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    match &base.config.store {
        StoreConfig::Memory(memory) => {
            let store = MemoryStore::new(memory, base.timing.clock.clone());
            by_memory(base, store, listeners, shutdown)
        }
        StoreConfig::Redis(redis) => {
            let secret = base.config.key_secret.unwrap_or(KeySecret::BUILT_IN);
            let shared = RedisShared::new(redis, secret, base.timing.clock.clone());
            let redis = redis.clone();
            by_redis(base, (&redis, shared), listeners, shutdown)
        }
    }
}

fn by_memory(
    base: Foundation,
    store: MemoryStore,
    listeners: Listeners,
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    if !base.live.current().queues.is_empty() {
        tracing::warn!(
            "queues are kept in memory: what is in them lives as long as this process; store.redis keeps it"
        );
    }
    let shown = store.clone();
    base.metrics.show_memory(move || shown.stats())?;
    base.readiness.set(Ok(()));
    let depths = depths::watch(QueueHandle::new(store.clone()), Arc::clone(base.live.queues()));
    let swept = store.clone();
    let swept = every_second(move || swept.sweep());
    let background = async { tokio::join!(swept, depths).0 };
    let shared = store.clone();
    let share: Arc<ShareMemory> = Arc::new(move |rules, domains| share_among(&shared, rules, domains));
    let engines = EnginesInUse::default();
    let store_files = StoreFiles::default();
    let publish = Arc::new(|_: &StrategyMeanings| ());
    let (usage_link, control_link, last) = (None, None, Box::pin(async {}));
    let app = App { base, listeners, usage_link, control_link, engines, store_files, share, publish, last };
    let stores = move || WorkerStores {
        decisions: store.clone(),
        leases: Some(LeaseHandle::new(store.clone())),
        queues: Some(QueueHandle::new(store.clone())),
    };
    app.serve(Box::new(stores), background, shutdown)
}

fn by_redis(
    base: Foundation,
    (redis, shared): (&RedisConfig, RedisShared),
    listeners: Listeners,
    shutdown: ShutdownSignal,
) -> Result<(), AppError> {
    let clock = base.timing.clock.clone();
    let denials = DenialsShared::new(redis.denials_max_age, Monotonic::of(&clock));
    let counted = shared.clone();
    base.metrics.show_redis(move || counted.single_slot_calls())?;
    let health = shared.health().clone();
    base.metrics.show_store(move || health.status())?;
    if base.config.envoy.reference_metrics {
        base.metrics.show_redis_pool(shared.connections())?;
    }
    let local = LocalShared::new(redis.local_budget, clock.clone());
    let counted = local.clone();
    base.metrics.show_local(move || counted.stats())?;
    let swept = local.clone();
    let swept = every_second(move || swept.sweep());
    let NodeCounters { approximate, kept, last } = NodeCounters::of(&base, redis, &shared)?;
    let engines = EnginesInUse::default();
    let watch = watch_over(shared.clone(), engines.clone(), base.readiness.clone());
    let queues = Arc::clone(base.live.queues());
    let asked = shared.clone();
    let background = async move {
        // The connection of the looks begins on the thread that asks, with the first queue.
        let store = QueueHandle::new(asked.store_on_use());
        let depths = depths::watch(store.clone(), Arc::clone(&queues));
        tokio::join!(watch, depths, kinds::watch(store, queues), swept, kept).0
    };
    let workers = server::worker_count(&base.config.server);
    let store_files = StoreFiles {
        always: redis.open_files(workers) + usize::from(base.config.server.control),
        queues: redis.open_files(workers) + redis.open_files(1),
    };
    let share: Arc<ShareMemory> = Arc::new(|_, _| ());
    let control_link = base.config.server.control.then(|| shared.control());
    let usage = shared.clone();
    let usage_link = Some(Box::new(move || usage.usage()) as Box<_>);
    let live = Arc::clone(&base.live);
    let publish = published_by(shared.health().clone(), &base.config.usage.node());
    let app = App { base, listeners, usage_link, control_link, engines, store_files, share, publish, last };
    let redis = redis.clone();
    let stores = move || {
        let store = shared.store();
        let leases = Some(LeaseHandle::new(store.clone()));
        // Queues have connections of their own: their payloads must not hold decisions up.
        let queues = match live.queues().load().is_empty() {
            true => QueueHandle::new(shared.store_on_use()),
            false => QueueHandle::new(shared.store()),
        };
        let exact = Coalesce::on(&clock, denials.before(store.clone()), &redis);
        let decisions = local.before(approximate.before(exact, store));
        WorkerStores { decisions, leases, queues: Some(queues) }
    };
    app.serve(Box::new(stores), background, shutdown)
}

/// Shows other nodes what the files say of each strategy. Two processes may have the same node name, so a random number is part
/// of this one's.
fn published_by(health: StoreHealth, node: &str) -> Arc<PublishMeanings> {
    let node = format!("{node}-{:016x}", RandomState::new().hash_one(node));
    Arc::new(move |meanings: &StrategyMeanings| {
        let strategies = meanings.iter().map(|(name, hash)| (name.to_owned(), hash)).collect();
        health.publish_rules(RulesDigest { node: node.clone(), strategies });
    })
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

/// The counters of the node itself, with what keeps them in the background, and what ends them after the last answer.
struct NodeCounters {
    approximate: ApproximateShared,
    kept: BoxedWork,
    last: BoxedWork,
}

impl NodeCounters {
    /// They are shown on the metrics page and in `/readyz`.
    fn of(base: &Foundation, redis: &RedisConfig, shared: &RedisShared) -> Result<Self, AppError> {
        let approximate = ApproximateShared::new(redis, &base.timing.clock);
        let counted = approximate.clone();
        base.metrics.show_approximate(move || counted.stats())?;
        let noted = approximate.clone();
        base.readiness.notes_also(move || {
            noted.notes().into_iter().map(|note| without_place(note, monotonic())).collect()
        });
        // Its connections begin with the first strategy that nodes count.
        let counts = shared.store_on_use();
        let (kept, kept_by, live) = (approximate.clone(), counts.clone(), Arc::clone(&base.live));
        let kept = async move { kept.keep(kept_by, || live.current().approximate()).await };
        let ended = approximate.clone();
        let last = async move { ended.finish(counts).await };
        Ok(Self { approximate, kept: Box::pin(kept), last: Box::pin(last) })
    }
}

/// Shares the memory among strategies, and Envoy's domains if there are any.
fn share_among(store: &MemoryStore, rules: &Rules, domains: Option<&Domains>) {
    let domains = domains.into_iter().flat_map(Domains::iter).map(|domain| &**domain.owner());
    store.share_among(rules.owners().chain(domains));
}

/// Sweeps expired keys, so that they do not take up the budget.
async fn every_second(sweep: impl Fn()) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep();
    }
}
