//! Metrics of decisions: sums of the workers' counters, taken at scrape time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use prometheus::proto::Metric;
use weir_core::strategy::Rules;
use weir_store::StoreError;

use super::Metrics;
use super::costs::{self, CostSums, CountedCost};
use super::decision_log::DecisionLog;
use super::denials;
use super::families::{FamilySpec, counter, labelled};
use super::histogram::{Histogram, LatencyCounts};
use super::names::CounterNames;
use super::outcome::CountedOutcome;
use super::past::{self, PastCounts, ShadowSums};
use super::recorder::{CountedLease, CountedMethod, Recorder, Rejection, WorkerCounters};
use super::sample::MakeSample;
use super::strategy_latency;
use super::totals::{CountedTotal, TotalsLayout};

/// All workers' counters under their Prometheus names.
pub(super) struct DecisionCounters {
    state: Mutex<CountersState>,
    log: OnceLock<Arc<DecisionLog>>,
    sample: OnceLock<MakeSample>,
}

/// The counters, and the names of their rows.
struct CountersState {
    names: Arc<CounterNames>,
    layout: Arc<TotalsLayout>,
    workers: Vec<Arc<WorkerCounters>>,
    /// Recorders of the current configuration, and older ones that calls may still write to.
    recorders: Vec<Arc<Recorder>>,
    past: PastCounts,
}

/// The rows that count the decisions of one configuration.
#[derive(Debug, Clone)]
pub struct CountedRows(Arc<TotalsLayout>);

impl CountedRows {
    /// True if both are the rows of one configuration.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

pub(super) const FAMILIES: [FamilySpec; 10] = [
    FamilySpec::counter(
        "weir_decisions_total",
        "Decisions by strategy and outcome.",
        &["strategy", "outcome"],
    ),
    FamilySpec::histogram(
        "weir_decision_duration_seconds",
        "Time from a request whose strategy is known to its answer.",
        &["method"],
    ),
    FamilySpec::counter(
        "weir_rejected_requests_total",
        "Requests that could not be decided, by reason.",
        &["reason"],
    ),
    FamilySpec::counter("weir_store_calls_total", "Calls of the store by result.", &["result"]),
    FamilySpec::counter("weir_store_errors_total", "Failed calls of the store by kind of error.", &["kind"]),
    FamilySpec::histogram("weir_store_call_duration_seconds", "Time that one call of the store took.", &[]),
    FamilySpec::counter(
        "weir_lease_calls_total",
        "Renewals and releases of leases by strategy, call and outcome; only of strategies with leases.",
        &["strategy", "call", "outcome"],
    ),
    FamilySpec::counter(
        "weir_shadow_decisions_total",
        "Decisions of shadow strategies by live strategy, shadow and outcome; only of strategies with shadows.",
        &["strategy", "shadow", "outcome"],
    ),
    FamilySpec::counter(
        "weir_denials_total",
        "Decisions that a limit denied, by strategy and limit; of several limits the one that denies longest.",
        &["strategy", "limit"],
    ),
    FamilySpec::histogram(
        "weir_strategy_duration_seconds",
        "Time of decisions by configured strategy; only of the first 1,000.",
        &["strategy"],
    ),
];

impl CountersState {
    /// Adds up the rows of older configurations that no call uses any more.
    fn retire(&mut self) {
        let Self { names, layout, recorders, past, .. } = self;
        recorders.retain(|recorder| {
            let is_in_use = Arc::ptr_eq(recorder.totals.layout(), layout) || Arc::strong_count(recorder) > 1;
            if !is_in_use {
                past.add(recorder);
            }
            is_in_use
        });
        past.retain(names, &layout.denials);
        self.workers.iter().for_each(|worker| worker.costs.retain(&self.names));
    }
}

impl Metrics {
    /// The rows of the current configuration.
    pub fn rows(&self) -> CountedRows {
        CountedRows(Arc::clone(&self.decisions.state.lock().layout))
    }

    /// Lays out the rows of a configuration that is about to be served. What remains keeps counting; what is removed is
    /// still shown, up to a bound.
    pub fn reconfigure(&self, rules: &Rules) -> CountedRows {
        let state = &mut *self.decisions.state.lock();
        let mut names = CounterNames::clone(&state.names);
        state.layout = Arc::new(TotalsLayout::new(rules, &mut names));
        state.names = Arc::new(names);
        state.retire();
        CountedRows(Arc::clone(&state.layout))
    }

    /// Creates the counters of one more worker.
    pub fn worker(&self) -> Arc<WorkerCounters> {
        let worker = Arc::<WorkerCounters>::default();
        let mut state = self.decisions.state.lock();
        if let Some(make) = self.decisions.sample.get() {
            worker.sample.give(make());
        }
        state.workers.push(Arc::clone(&worker));
        worker
    }

    /// Creates a worker's counters in the rows of a configuration.
    pub fn recorder_in(&self, rows: &CountedRows, worker: &Arc<WorkerCounters>) -> Arc<Recorder> {
        let log = self.decisions.log.get().cloned();
        let recorder = Arc::new(Recorder::new(Arc::clone(&rows.0), Arc::clone(worker), log));
        self.decisions.state.lock().recorders.push(Arc::clone(&recorder));
        recorder
    }

    /// Units that all workers have used of costs by name so far.
    pub fn used_costs(&self) -> BTreeMap<CountedCost, u64> {
        let mut sums = BTreeMap::new();
        self.decisions.state.lock().workers.iter().for_each(|worker| worker.costs.add_used(&mut sums));
        sums
    }

    /// The names of the strategies and patterns in [`CountedTotal`].
    pub fn names(&self) -> Arc<CounterNames> {
        Arc::clone(&self.decisions.state.lock().names)
    }

    /// Decisions counted by all workers so far. One row may be reported in several parts.
    pub fn totals(&self, each: impl FnMut(CountedTotal)) {
        self.decisions.totals(each);
    }

    /// Gives decisions to samples that `make` makes, one for each worker. Later calls are ignored: there is one sample.
    pub fn sample(&self, make: MakeSample) {
        let state = self.decisions.state.lock();
        if self.decisions.sample.set(make).is_ok()
            && let Some(make) = self.decisions.sample.get()
        {
            state.workers.iter().for_each(|worker| worker.sample.give(make()));
        }
    }

    /// Lets the samples of all workers begin with the next decision.
    pub fn begin_samples(&self) {
        self.decisions.state.lock().workers.iter().for_each(|worker| worker.sample.begin());
    }

    /// Times of the decisions of one method so far.
    pub fn latency_of(&self, method: CountedMethod) -> prometheus::proto::Histogram {
        let workers = self.decisions.state.lock().workers.clone();
        Histogram::sum(workers.iter().map(|worker| &worker.latency[method as usize]))
    }

    /// Histogram of decision times so far.
    pub fn latency(&self) -> LatencyCounts {
        let mut counts = LatencyCounts::default();
        for worker in &self.decisions.state.lock().workers {
            for method in [CountedMethod::ShouldAllow, CountedMethod::ShouldRateLimit, CountedMethod::Acquire]
            {
                worker.latency[method as usize].add_to(&mut counts);
            }
        }
        counts
    }
}

impl DecisionCounters {
    pub(super) fn new(rules: &Rules) -> Self {
        let mut names = CounterNames::default();
        let layout = Arc::new(TotalsLayout::new(rules, &mut names));
        let state = CountersState {
            names: Arc::new(names),
            layout,
            workers: Vec::new(),
            recorders: Vec::new(),
            past: PastCounts::default(),
        };
        Self { state: Mutex::new(state), log: OnceLock::new(), sample: OnceLock::new() }
    }

    /// Sets the decision log for recorders created from now on.
    pub(super) fn log_to(&self, log: &Arc<DecisionLog>) {
        // Later calls are ignored: a process has one log.
        let _ = self.log.set(Arc::clone(log));
    }

    /// Sums of the costs that all workers have counted.
    pub(super) fn costs(&self) -> CostSums {
        let state = self.state.lock();
        costs::summed(&state.layout.costs, state.workers.iter().map(|worker| &worker.costs))
    }

    /// Renewals and releases; empty if no strategy has leases.
    fn of_leases(state: &CountersState) -> Vec<Metric> {
        let mut sums = state.past.leases.clone();
        state.recorders.iter().for_each(|recorder| past::add_leases(&mut sums, recorder));
        for &index in &state.layout.leases {
            let number = state.layout.strategies.get(index);
            number.map(|&number| sums.entry(number).or_default());
        }
        let mut metrics = Vec::new();
        for (number, sums) in sums {
            let Some(strategy) = state.names.strategy(number) else { continue };
            for (sums, call) in sums.iter().zip(["renew", "release"]) {
                for outcome in CountedLease::ALL {
                    let labels = [("strategy", &**strategy), ("call", call), ("outcome", outcome.name())];
                    metrics.push(counter(&labels, sums[outcome as usize]));
                }
            }
        }
        metrics
    }

    /// Outcomes of shadows; empty if there are none.
    fn of_shadows(state: &CountersState) -> Vec<Metric> {
        let mut sums = state.past.shadows.clone();
        state.recorders.iter().for_each(|recorder| past::add_shadows(&mut sums, recorder));
        for names in &state.layout.shadows {
            sums.entry(names.clone()).or_default();
        }
        let of = |([strategy, shadow], sums): ([String; 2], ShadowSums)| {
            CountedOutcome::OF_SHADOWS.map(|outcome| {
                let labels = [("strategy", &*strategy), ("shadow", &*shadow), ("outcome", outcome.name())];
                counter(&labels, sums[outcome as usize])
            })
        };
        sums.into_iter().flat_map(of).collect()
    }

    fn of_denials(state: &CountersState) -> Vec<Metric> {
        let mut sums = state.past.denials.clone();
        state.recorders.iter().for_each(|recorder| recorder.add_denials(&mut sums));
        denials::metrics(sums, &state.layout.denials, &state.names)
    }

    fn of_strategies(state: &CountersState) -> Vec<Metric> {
        let mut sums = state.past.times.clone();
        state.recorders.iter().for_each(|recorder| recorder.add_times(&mut sums));
        let timed = state.layout.strategies.iter().take(state.layout.timed);
        for &number in timed {
            sums.entry(number).or_default();
        }
        strategy_latency::metrics(&sums, &state.names)
    }

    /// Decisions counted by all workers so far. One row may be reported in several parts.
    pub(super) fn totals(&self, mut each: impl FnMut(CountedTotal)) {
        let mut state = self.state.lock();
        state.retire();
        state.past.each(&mut each);
        state.recorders.iter().for_each(|recorder| recorder.totals.each(&mut each));
    }

    fn by_outcome(&self) -> Vec<Metric> {
        let mut sums = BTreeMap::<u32, [u64; CountedOutcome::ALL.len()]>::new();
        self.totals(|one| {
            sums.entry(one.strategy).or_default()[one.outcome as usize] += one.calls;
        });
        let names = Arc::clone(&self.state.lock().names);
        let of = |(number, strategy): (u32, &Arc<str>)| {
            let sums = sums.get(&number).copied().unwrap_or_default();
            CountedOutcome::ALL.map(|outcome| {
                let labels = [("strategy", &**strategy), ("outcome", outcome.name())];
                counter(&labels, sums[outcome as usize])
            })
        };
        names.strategies.iter().flat_map(of).collect()
    }
    pub(super) fn metrics(&self) -> [Vec<Metric>; FAMILIES.len()] {
        let decisions = self.by_outcome();
        let state = self.state.lock();
        let workers = &state.workers;
        let sum = |of: &dyn Fn(&WorkerCounters) -> &AtomicU64| -> u64 {
            workers.iter().map(|worker| of(worker).load(Relaxed)).sum()
        };
        let rejections = Rejection::ALL.map(|reason| {
            counter(&[("reason", reason.name())], sum(&|worker| &worker.rejections[reason as usize]))
        });
        let errors: [u64; StoreError::KINDS.len()] =
            std::array::from_fn(|kind| sum(&|worker| &worker.store_errors[kind]));
        let by_kind =
            StoreError::KINDS.iter().zip(errors).map(|(kind, count)| counter(&[("kind", kind)], count));
        let calls = [
            counter(&[("result", "ok")], sum(&|worker| &worker.store_answers)),
            counter(&[("result", "error")], errors.iter().sum()),
        ];
        let by_method = |method: CountedMethod| {
            let parts = workers.iter().map(|worker| &worker.latency[method as usize]);
            histogram(&[("method", method.name())], parts)
        };
        [
            decisions,
            CountedMethod::ALL.map(by_method).to_vec(),
            rejections.to_vec(),
            calls.to_vec(),
            by_kind.collect(),
            vec![histogram(&[], workers.iter().map(|worker| &worker.store_latency))],
            Self::of_leases(&state),
            Self::of_shadows(&state),
            Self::of_denials(&state),
            Self::of_strategies(&state),
        ]
    }
}

fn histogram<'a>(labels: &[(&str, &str)], parts: impl Iterator<Item = &'a Histogram>) -> Metric {
    let mut metric = labelled(labels);
    metric.set_histogram(Histogram::sum(parts));
    metric
}
