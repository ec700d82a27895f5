//! Telemetry: metrics on a registry that main hands down, and logs.
//!
//! No label takes a value from a request: only strategies, outcomes and kinds of errors vary. Every series exists
//! from the start, at 0.

mod approximate;
mod backend;
mod config;
mod costs;
mod decision_log;
mod decisions;
mod denials;
pub mod families;
mod histogram;
mod lines;
mod log;
mod names;
mod outcome;
mod past;
#[cfg(target_os = "linux")]
mod process;
mod recorder;
mod rejected;
mod sample;
pub mod sampled;
mod store;
mod strategy_latency;
mod tls;
mod totals;
mod transport;
mod worker_recorder;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};
use weir_grpc::BufferBudget;

pub(crate) use self::decision_log::DecisionSink;
pub use config::ConfigLoads;
pub use costs::CountedCost;
pub use decision_log::{DecisionLine, DecisionLog, DecisionLogError, LoggedCosts, is_denial};
pub use decisions::CountedRows;
pub use histogram::{LatencyCounts, quantile_us};
pub use lines::LineWriter;
pub use log::{Format, check_filter, flush_logs, init_logs, log_panics};
pub use names::{CountedPattern, CounterNames, LimitUnit};
pub use outcome::CountedOutcome;
pub use recorder::{CountedLease, CountedMethod, Recorder, Rejection, WorkerCounters};
pub use rejected::{RejectedKind, log_rejected, log_rejected_each_minute, rejected_by_kind};
pub use sample::{DecisionSample, MakeSample};
pub use tls::{HandshakeResult, TlsLoad, TlsMetrics};
pub use totals::{CountedTotal, TotalsRow};
pub use transport::TransportMetrics;
use weir_core::strategy::Rules;
pub use worker_recorder::WorkerRecorder;

use self::decisions::DecisionCounters;
use self::families::{FamilySpec, counter, gauge};
use self::sampled::{Series, sampled};

/// The metrics of one process.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    decisions: Arc<DecisionCounters>,
    config: ConfigLoads,
    connections: Arc<Mutex<Vec<Arc<AtomicUsize>>>>,
    connections_refused: Arc<AtomicU64>,
    transport: Arc<TransportMetrics>,
    /// The server's budget, once it runs.
    budget: Arc<ArcSwapOption<BufferBudget>>,
    /// Labels of every metric that has none of that name.
    labels: Arc<[(String, String)]>,
}

impl Metrics {
    /// Registers everything that every node has. The strategies of `rules` become label values.
    pub fn register(registry: &Registry, rules: &Rules) -> Result<Self, prometheus::Error> {
        let connections: Arc<Mutex<Vec<Arc<AtomicUsize>>>> = Arc::default();
        let counted = Arc::clone(&connections);
        let connections_refused = Arc::<AtomicU64>::default();
        let refused = Arc::clone(&connections_refused);
        let open = move || {
            let open = counted.lock().iter().map(|open| open.load(Relaxed)).sum::<usize>();
            [open as f64, refused.load(Relaxed) as f64]
        };
        registry.register(Box::new(sampled(CONNECTIONS, open)?))?;
        registry.register(Box::new(sampled(LOG, || [log::lines_dropped() as f64])?))?;
        registry.register(Box::new(build_info()?))?;
        #[cfg(target_os = "linux")]
        registry.register(Box::new(process::collector()?))?;
        let transport = TransportMetrics::register(registry)?;
        let budget = Arc::<ArcSwapOption<BufferBudget>>::default();
        let shown = Arc::clone(&budget);
        let read = move || {
            let shown = shown.load();
            let of = |read: fn(&BufferBudget) -> usize| shown.as_deref().map_or(0, read) as f64;
            let streams = of(|budget| budget.streams().count());
            [of(BufferBudget::taken), of(BufferBudget::limit), streams]
        };
        registry.register(Box::new(sampled(BUFFERS, read)?))?;
        let metrics = Self {
            registry: registry.clone(),
            decisions: Arc::new(DecisionCounters::new(rules)),
            config: ConfigLoads::default(),
            connections,
            connections_refused,
            transport,
            budget,
            labels: Arc::default(),
        };
        let decisions = Arc::clone(&metrics.decisions);
        metrics.show_families(decisions::FAMILIES, move || decisions.metrics())?;
        let decisions = Arc::clone(&metrics.decisions);
        metrics.show_families(costs::FAMILIES, move || decisions.costs().metrics())?;
        let config = metrics.config.clone();
        metrics.show_families(config::FAMILIES, move || config.metrics())?;
        Ok(metrics)
    }

    /// Adds these labels to each metric.
    #[must_use]
    pub fn with_labels(self, labels: &[(String, String)]) -> Self {
        Self { labels: labels.into(), ..self }
    }

    /// Shows the counters of `log`. Recorders that are made from now on write their decisions to it.
    pub fn log_decisions(&self, log: &Arc<DecisionLog>) -> Result<(), prometheus::Error> {
        let shown = Arc::clone(log);
        self.show_families(decision_log::FAMILIES, move || shown.metrics())?;
        self.decisions.log_to(log);
        Ok(())
    }

    /// Counters of its own for one more worker, so that workers share no cache line; in the rows of the current
    /// configuration.
    pub fn recorder(&self) -> Arc<Recorder> {
        self.recorder_in(&self.rows(), &self.worker())
    }

    /// The readings of the configuration.
    pub fn config(&self) -> &ConfigLoads {
        &self.config
    }

    /// A count of open connections of its own for one more worker.
    pub fn connections(&self) -> Arc<AtomicUsize> {
        let open = Arc::default();
        self.connections.lock().push(Arc::clone(&open));
        open
    }

    /// The count of connections that were closed because there were too many.
    pub fn connections_refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.connections_refused)
    }

    /// The counters of connection events.
    pub fn transport(&self) -> Arc<TransportMetrics> {
        Arc::clone(&self.transport)
    }

    /// Shows how much of the budget of buffered bytes is taken, and how many streams are open.
    pub fn show_budget(&self, budget: BufferBudget) {
        self.budget.store(Some(Arc::new(budget)));
    }

    /// Registers refused calls: every reason with its count.
    pub fn show_refusals(
        &self,
        counts: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.show_families(REFUSED_CALLS, move || {
            [counts().into_iter().map(|(reason, count)| counter(&[("reason", reason)], count)).collect()]
        })
    }

    /// Registers refused files: every kind with 1 or 0.
    pub fn show_refused_files(
        &self,
        counts: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.show_families(REFUSED_FILES, move || {
            [counts().into_iter().map(|(files, count)| gauge(&[("files", files)], count as f64)).collect()]
        })
    }

    /// Registers the metrics of TLS.
    pub fn show_tls(&self) -> Result<Arc<TlsMetrics>, prometheus::Error> {
        TlsMetrics::register(&self.registry)
    }

    /// Everything registered, in the Prometheus text format.
    pub fn encode(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.gather())
    }

    /// Everything registered.
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        let mut families = self.registry.gather();
        if !self.labels.is_empty() {
            families.iter_mut().for_each(|family| families::label_all(family, &self.labels));
        }
        families
    }
}

const CONNECTIONS: [Series; 2] = [
    Series::gauge("weir_connections", "Connections that are open now."),
    Series::counter(
        "weir_connections_refused_total",
        "Connections that were closed at once because there were too many.",
    ),
];

const BUFFERS: [Series; 3] = [
    Series::gauge(
        "weir_buffered_bytes",
        "Bytes that are reserved for open calls, their messages and unsent answers.",
    ),
    Series::gauge(
        "weir_buffered_bytes_limit",
        "The largest number of those bytes: server.limits.max_buffered_bytes.",
    ),
    Series::gauge(
        "weir_open_streams",
        "Open calls of streaming methods; at most server.limits.max_open_streams.",
    ),
];

const REFUSED_CALLS: [FamilySpec; 1] = [FamilySpec::counter(
    "weir_refused_calls_total",
    "Calls and questions that were refused for want of a credential or a right.",
    &["reason"],
)];

const REFUSED_FILES: [FamilySpec; 1] = [FamilySpec::gauge(
    "weir_files_refused",
    "Whether the newest version of these files has mistakes, so that an older one is in force: 1 or 0.",
    &["files"],
)];

const LOG: [Series; 1] = [Series::counter(
    "weir_log_lines_dropped_total",
    "Log lines that were dropped because they did not fit or could not be written.",
)];

fn build_info() -> Result<prometheus::IntGauge, prometheus::Error> {
    let options = prometheus::Opts::new("weir_build_info", "The version that runs; always 1.")
        .const_label("version", env!("CARGO_PKG_VERSION"));
    let info = prometheus::IntGauge::with_opts(options)?;
    info.set(1);
    Ok(info)
}
