//! Wiring: a configuration and sockets in, a running service out.

mod background;
mod begun;
mod config;
mod credentials;
mod error;
mod features;
mod grpc_ports;
mod listeners;
mod place_note;
mod serving;
mod stores;
mod tls;
mod uses;

use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use weir_config::{Config, DecisionLogConfig, ServerConfig, StoreConfig};
use weir_store::backend::Backend;
use weir_time::clock::Clock;
use weir_units::Micros;

pub use self::background::start_background;
pub use self::begun::BegunFeatures;
pub use self::error::{AppError, PortTlsError};
pub use self::listeners::Listeners;
pub use self::uses::uses;
use crate::audit::AuditLog;
use crate::feature::{self, FeatureList};
use crate::feature_parts::FeatureParts;
pub use crate::owned_thread::OwnedThread;
use crate::readiness::Readiness;
use crate::server::{LiveSnapshot, ShutdownSignal};
use crate::service::{Snapshot, Templates};
use crate::telemetry::{DecisionLog, Metrics};
use crate::watch::{POLL_EVERY, ReloadRequests};

/// Time for which a shutdown waits for the decision log, and for the audit, to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The clock, intervals and reload requests of a service. Tests inject their own.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The clock of the decisions.
    pub clock: Clock,
    /// The interval at which files are looked at for changes.
    pub poll_every: Duration,
    /// Requests to read them at once.
    pub reloads: ReloadRequests,
}

impl From<Clock> for Timing {
    fn from(clock: Clock) -> Self {
        Self { clock, poll_every: POLL_EVERY, reloads: ReloadRequests::default() }
    }
}

/// Shared by all parts of a service.
struct AppBase {
    /// The settings. The rules and queues are in the snapshot.
    config: Config,
    timing: Timing,
    readiness: Readiness,
    metrics: Metrics,
    audit: AuditLog,
    live: Arc<LiveSnapshot>,
    denials_valid: Micros,
    features: (FeatureList, BegunFeatures),
}

/// Serves until `shutdown`, then until the calls in flight have finished. Blocks its thread.
pub fn run(
    config: Config,
    listeners: Listeners,
    timing: impl Into<Timing>,
    shutdown: ShutdownSignal,
    features: FeatureList,
) -> Result<(), AppError> {
    let timing = timing.into();
    let begun = BegunFeatures::new(features, &config, &timing.clock)?;
    run_with(config, listeners, timing, shutdown, (features, begun))
}

/// Runs a node with features that have begun already.
pub fn run_with(
    config: Config,
    listeners: Listeners,
    timing: Timing,
    shutdown: ShutdownSignal,
    features: (FeatureList, BegunFeatures),
) -> Result<(), AppError> {
    run_by(config, timing, features, |base| stores::serve(base, listeners, shutdown))
}

/// Runs a node on `backend` instead of the store that the configuration names.
pub fn run_on(
    backend: &impl Backend,
    config: Config,
    listeners: Listeners,
    timing: impl Into<Timing>,
    shutdown: ShutdownSignal,
    features: FeatureList,
) -> Result<(), AppError> {
    let timing = timing.into();
    let begun = BegunFeatures::new(features, &config, &timing.clock)?;
    run_by(config, timing, (features, begun), |base| {
        stores::serve_on_own(backend, (base, listeners), shutdown)
    })
}

fn run_by(
    config: Config,
    timing: Timing,
    (features, begun): (FeatureList, BegunFeatures),
    serve: impl FnOnce(AppBase) -> Result<(), AppError>,
) -> Result<(), AppError> {
    let readiness = Readiness::starting(config.server.ready_needs_store);
    readiness.services_need(feature::services(features));
    // What stands in for another program is unhealthy until the first PONG, so that a roll-out with a wrong address stops.
    let needs_first = config.server.ready_needs_first_answer || config.server.alone.is_some();
    let readiness = if needs_first { readiness.needing_first_answer() } else { readiness };
    let labels = config.server.alone.as_ref().map_or(&[][..], |alone| &alone.labels);
    let metrics = Metrics::register(&Registry::new(), &config.rules)?.with_labels(labels);
    let log = open_log(&config.decision_log, &metrics, &timing.clock)?;
    let audit = open_audit(&config.server, &timing.clock, features)?;
    let base = AppBase::new(config, timing, (readiness, metrics, audit.clone()), (features, begun))?;
    let served = serve(base);
    audit.flush(LAST_LINES);
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

fn open_audit(config: &ServerConfig, clock: &Clock, features: FeatureList) -> Result<AuditLog, AppError> {
    let failed = |error| AppError::Audit { target: config.audit_file.display().to_string(), error };
    AuditLog::open_knowing(config.audit_path(), clock.clone(), feature::methods(features)).map_err(failed)
}

impl AppBase {
    /// Makes the first snapshot, still without what features set when they start.
    fn new(
        mut config: Config,
        timing: Timing,
        (readiness, metrics, audit): (Readiness, Metrics, AuditLog),
        (features, begun): (FeatureList, BegunFeatures),
    ) -> Result<Self, AppError> {
        let denials_valid = match &config.store {
            StoreConfig::Memory(_) => Micros::from_secs(1),
            StoreConfig::Redis(redis) => redis.denials_max_age,
        };
        metrics.config().read(config.fingerprint);
        // Before the rules are taken out: features see all of the configuration.
        let prepared = feature::prepare(features, &config, &FeatureParts::default());
        let parts = prepared.map_err(AppError::refused_by)?;
        let rules = std::mem::take(&mut config.rules);
        let templates = Templates::new(&config.messages).with_denials_valid_for(denials_valid);
        let snapshot = Snapshot {
            templates: Arc::new(templates),
            features: parts,
            reserve: config.server.answer_reserve.into(),
            ..Snapshot::new(rules, &metrics)
        };
        let live = LiveSnapshot::new(snapshot);
        Ok(Self {
            config,
            timing,
            readiness,
            metrics,
            audit,
            live,
            denials_valid,
            features: (features, begun),
        })
    }
}
