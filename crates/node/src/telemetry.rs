//! Telemetry: metrics on a registry that main hands down, and logs.
//!
//! No label takes a value from a request: only strategies, outcomes and kinds of errors vary. Every series exists
//! from the start, at 0.

mod approximate;
mod backend;
mod by_label;
mod config;
mod costs;
mod decision_log;
mod decisions;
mod denials;
pub mod families;
mod histogram;
mod lines;
mod local;
mod log;
mod memory;
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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use prometheus::proto::MetricType;
use prometheus::{Registry, TextEncoder};
use weir_grpc::BufferBudget;

use self::approximate::ApproximateCollector;
use self::by_label::{ByLabel, REFUSED_CALLS, REFUSED_FILES};
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
use weir_store::approximate::ApproximateStats;
pub use worker_recorder::WorkerRecorder;

use self::costs::CostCollector;
use self::decision_log::DecisionLogCounters;
use self::decisions::DecisionCounters;
use self::sampled::{Sampled, Series};

/// The metrics of one process.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    decisions: Arc<DecisionCounters>,
    config: ConfigLoads,
    /// Open connections of each worker.
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
        let decisions = Arc::new(DecisionCounters::new(rules)?);
        registry.register(Box::new(Arc::clone(&decisions).collector()))?;
        let counted = Arc::clone(&decisions);
        registry.register(Box::new(CostCollector::new(move || counted.costs())?))?;
        let config = ConfigLoads::default();
        registry.register(Box::new(config.collector()?))?;
        let connections: Arc<Mutex<Vec<Arc<AtomicUsize>>>> = Arc::default();
        let counted = Arc::clone(&connections);
        let connections_refused = Arc::<AtomicU64>::default();
        let refused = Arc::clone(&connections_refused);
        let open = move || {
            let open = counted.lock().iter().map(|open| open.load(Relaxed)).sum::<usize>();
            [open as f64, refused.load(Relaxed) as f64]
        };
        registry.register(Box::new(Sampled::new(CONNECTIONS, open)?))?;
        registry.register(Box::new(Sampled::new(LOG, || [log::lines_dropped() as f64])?))?;
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
        registry.register(Box::new(Sampled::new(BUFFERS, read)?))?;
        Ok(Self {
            registry: registry.clone(),
            decisions,
            config,
            connections,
            connections_refused,
            transport,
            budget,
            labels: Arc::default(),
        })
    }

    /// The same metrics with these labels on each of them.
    #[must_use]
    pub fn with_labels(self, labels: &[(String, String)]) -> Self {
        Self { labels: labels.into(), ..self }
    }

    /// Shows the counters of `log`. Recorders that are made from now on write their decisions to it.
    pub fn log_decisions(&self, log: &Arc<DecisionLog>) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(DecisionLogCounters::new(Arc::clone(log))?))?;
        self.decisions.log_to(log);
        Ok(())
    }

    /// Counters of its own for one more worker, so that workers share no cache line; in the rows of the current
    /// configuration.
    #[must_use]
    pub fn recorder(&self) -> Arc<Recorder> {
        self.recorder_in(&self.decisions.rows(), &self.decisions.worker())
    }

    /// The counters of one more worker.
    #[must_use]
    pub fn worker(&self) -> Arc<WorkerCounters> {
        self.decisions.worker()
    }

    /// A worker's counters in the rows of a configuration.
    #[must_use]
    pub fn recorder_in(&self, rows: &CountedRows, worker: &Arc<WorkerCounters>) -> Arc<Recorder> {
        self.decisions.recorder(rows, worker)
    }

    /// The rows of the current configuration.
    #[must_use]
    pub fn rows(&self) -> CountedRows {
        self.decisions.rows()
    }

    /// The readings of the configuration.
    #[must_use]
    pub fn config(&self) -> &ConfigLoads {
        &self.config
    }

    /// Lays out the rows of a configuration that is about to be served. What remains keeps counting; what is removed is
    /// still shown, up to a bound.
    #[must_use]
    pub fn reconfigure(&self, rules: &Rules) -> CountedRows {
        self.decisions.reconfigure(rules)
    }

    /// Decisions counted by all workers so far. One row may be reported in several parts.
    pub fn totals(&self, each: impl FnMut(CountedTotal)) {
        self.decisions.totals(each);
    }

    /// Units that were used of costs by name so far, on all workers.
    #[must_use]
    pub fn used_costs(&self) -> BTreeMap<CountedCost, u64> {
        self.decisions.used_costs()
    }

    /// Histogram of decision times so far.
    #[must_use]
    pub fn latency(&self) -> LatencyCounts {
        self.decisions.latency()
    }

    /// Gives decisions to samples that `make` makes, one for each worker. Later calls are ignored: there is one sample.
    pub fn sample(&self, make: MakeSample) {
        self.decisions.sample(make);
    }

    /// Lets the samples of all workers begin with the next decision.
    pub fn begin_samples(&self) {
        self.decisions.begin_samples();
    }

    /// The names of the strategies and patterns in [`CountedTotal`].
    #[must_use]
    pub fn names(&self) -> Arc<CounterNames> {
        self.decisions.names()
    }

    /// A count of open connections of its own for one more worker.
    #[must_use]
    pub fn connections(&self) -> Arc<AtomicUsize> {
        let open = Arc::default();
        self.connections.lock().push(Arc::clone(&open));
        open
    }

    /// The count of connections that were closed because there were too many.
    #[must_use]
    pub fn connections_refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.connections_refused)
    }

    /// The counters of connection events.
    #[must_use]
    pub fn transport(&self) -> Arc<TransportMetrics> {
        Arc::clone(&self.transport)
    }

    /// Shows how much of the budget of buffered bytes is taken, and how many streams are open.
    pub fn show_budget(&self, budget: BufferBudget) {
        self.budget.store(Some(Arc::new(budget)));
    }

    /// Times of the decisions of one method so far.
    #[must_use]
    pub fn latency_of(&self, method: CountedMethod) -> prometheus::proto::Histogram {
        self.decisions.latency_of(method)
    }

    /// Registers what nodes count on their own.
    pub fn show_approximate(
        &self,
        stats: impl Fn() -> ApproximateStats + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(ApproximateCollector::new(stats)?))
    }

    /// Registers refused calls: every reason with its count.
    pub fn show_refusals(
        &self,
        counts: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(ByLabel::new(REFUSED_CALLS, counts)?))
    }

    /// Registers refused files: every kind with 1 or 0.
    pub fn show_refused_files(
        &self,
        counts: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    ) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(ByLabel::new(REFUSED_FILES, counts)?))
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
    #[must_use]
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        let mut families = self.registry.gather();
        if !self.labels.is_empty() {
            families.iter_mut().for_each(|family| families::label_all(family, &self.labels));
        }
        families
    }
}

const CONNECTIONS: [Series; 2] = [
    Series { name: "weir_connections", help: "Connections that are open now.", kind: MetricType::GAUGE },
    Series {
        name: "weir_connections_refused_total",
        help: "Connections that were closed at once because there were too many.",
        kind: MetricType::COUNTER,
    },
];

const BUFFERS: [Series; 3] = [
    Series {
        name: "weir_buffered_bytes",
        help: "Bytes that are reserved for open calls, their messages and unsent answers.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "weir_buffered_bytes_limit",
        help: "The largest number of those bytes: server.limits.max_buffered_bytes.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "weir_open_streams",
        help: "Open calls of streaming methods; at most server.limits.max_open_streams.",
        kind: MetricType::GAUGE,
    },
];

const LOG: [Series; 1] = [Series {
    name: "weir_log_lines_dropped_total",
    help: "Log lines that were dropped because they did not fit or could not be written.",
    kind: MetricType::COUNTER,
}];

fn build_info() -> Result<prometheus::IntGauge, prometheus::Error> {
    let options = prometheus::Opts::new("weir_build_info", "The version that runs; always 1.")
        .const_label("version", env!("CARGO_PKG_VERSION"));
    let info = prometheus::IntGauge::with_opts(options)?;
    info.set(1);
    Ok(info)
}
