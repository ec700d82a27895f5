//! Metrics of decisions: sums of the workers' counters, taken at scrape time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};
use weir_store::StoreError;

use super::consumers::ConsumerSummary;
use super::decision_log::DecisionLog;
use super::histogram::{Histogram, LatencyCounts};
use super::recorder::{CountedLease, CountedMethod, CountedOutcome, Recorder, Rejection};
use super::totals::{CountedTotal, TotalsLayout};

/// All workers' counters under their Prometheus names.
pub(super) struct DecisionCounters {
    pub(super) layout: Arc<TotalsLayout>,
    /// Which strategies have leases.
    leases: Vec<usize>,
    /// The names of each live strategy and its shadow.
    shadows: Vec<[String; 2]>,
    recorders: Mutex<Vec<Arc<Recorder>>>,
    log: OnceLock<Arc<DecisionLog>>,
    /// Sample rate of consumers.
    sample_rate: AtomicU32,
    descriptions: Vec<Desc>,
}

/// Collector for a registry, which must own it.
pub(super) struct SharedDecisionCounters(Arc<DecisionCounters>);

const FAMILIES: [(&str, &str, &[&str]); 8] = [
    ("weir_decisions_total", "Decisions by strategy and outcome.", &["strategy", "outcome"]),
    (
        "weir_decision_duration_seconds",
        "Time from a request whose strategy is known to its answer.",
        &["method"],
    ),
    ("weir_rejected_requests_total", "Requests that could not be decided, by reason.", &["reason"]),
    ("weir_store_calls_total", "Calls of the store by result.", &["result"]),
    ("weir_store_errors_total", "Failed calls of the store by kind of error.", &["kind"]),
    ("weir_store_call_duration_seconds", "Time that one call of the store took.", &[]),
    (
        "weir_lease_calls_total",
        "Renewals and releases of leases by strategy, call and outcome; only of strategies with leases.",
        &["strategy", "call", "outcome"],
    ),
    (
        "weir_shadow_decisions_total",
        "Decisions of shadow strategies by live strategy, shadow and outcome; only of strategies with shadows.",
        &["strategy", "shadow", "outcome"],
    ),
];

impl DecisionCounters {
    pub(super) fn new(
        layout: TotalsLayout,
        leases: Vec<usize>,
        shadows: Vec<[String; 2]>,
    ) -> Result<Self, prometheus::Error> {
        let describe = |(name, help, labels): &(&str, &str, &[&str])| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new((*name).to_owned(), (*help).to_owned(), labels, HashMap::new())
        };
        let descriptions = FAMILIES.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self {
            layout: Arc::new(layout),
            leases,
            shadows,
            recorders: Mutex::default(),
            log: OnceLock::new(),
            sample_rate: AtomicU32::default(),
            descriptions,
        })
    }

    pub(super) fn recorder(&self) -> Arc<Recorder> {
        let recorder =
            Arc::new(Recorder::new(Arc::clone(&self.layout), self.shadows.len(), self.log.get().cloned()));
        let mut recorders = self.recorders.lock();
        recorder.consumers.set_rate(self.sample_rate.load(Relaxed));
        recorders.push(Arc::clone(&recorder));
        recorder
    }

    /// Sets the decision log for recorders created from now on.
    pub(super) fn log_to(&self, log: &Arc<DecisionLog>) {
        // Later calls are ignored: a process has one log.
        let _ = self.log.set(Arc::clone(log));
    }

    pub(super) fn collector(self: Arc<Self>) -> SharedDecisionCounters {
        SharedDecisionCounters(self)
    }

    /// Renewals and releases; empty if no strategy has leases.
    fn of_leases(&self, recorders: &[Arc<Recorder>]) -> Vec<Metric> {
        let mut metrics = Vec::new();
        for &index in &self.leases {
            let strategy = self.layout.strategies.get(index).map_or("", |name| &**name);
            for (kind, call) in ["renew", "release"].into_iter().enumerate() {
                for outcome in CountedLease::ALL {
                    let of_one = |recorder: &Arc<Recorder>| {
                        let counts = recorder.leases.get(index).and_then(|counts| counts.0.get(kind));
                        counts.map_or(0, |counts| counts[outcome as usize].load(Relaxed))
                    };
                    let labels = [("strategy", strategy), ("call", call), ("outcome", outcome.name())];
                    metrics.push(counter(&labels, recorders.iter().map(of_one).sum()));
                }
            }
        }
        metrics
    }

    /// Outcomes of shadows; empty if there are none.
    fn of_shadows(&self, recorders: &[Arc<Recorder>]) -> Vec<Metric> {
        let of = |(number, [strategy, shadow]): (usize, &[String; 2])| {
            CountedOutcome::OF_SHADOWS.map(|outcome| {
                let of_one = |recorder: &Arc<Recorder>| {
                    let counts = recorder.shadows.get(number);
                    counts.map_or(0, |counts| counts.outcomes[outcome as usize].load(Relaxed))
                };
                let labels = [("strategy", &**strategy), ("shadow", shadow), ("outcome", outcome.name())];
                counter(&labels, recorders.iter().map(of_one).sum())
            })
        };
        self.shadows.iter().enumerate().flat_map(of).collect()
    }

    /// Decisions counted by all workers so far. One row may be reported in several parts.
    pub(super) fn totals(&self, mut each: impl FnMut(CountedTotal)) {
        let recorders = self.recorders.lock().clone();
        recorders.iter().for_each(|recorder| recorder.totals.each(&mut each));
    }

    pub(super) fn sample_consumers(&self, rate: u32) {
        let recorders = self.recorders.lock();
        self.sample_rate.store(rate, Relaxed);
        recorders.iter().for_each(|recorder| recorder.consumers.set_rate(rate));
    }

    pub(super) fn take_consumers(&self) -> ConsumerSummary {
        let recorders = self.recorders.lock().clone();
        let parts: Vec<ConsumerSummary> =
            recorders.iter().map(|recorder| recorder.consumers.take()).collect();
        ConsumerSummary::merged(&parts)
    }

    pub(super) fn latency(&self) -> LatencyCounts {
        let mut counts = LatencyCounts::default();
        for recorder in self.recorders.lock().iter() {
            for method in [CountedMethod::ShouldAllow, CountedMethod::ShouldRateLimit, CountedMethod::Acquire]
            {
                recorder.latency[method as usize].add_to(&mut counts);
            }
        }
        counts
    }

    fn by_outcome(&self) -> Vec<Metric> {
        let mut sums = vec![[0; CountedOutcome::ALL.len()]; self.layout.strategies.len()];
        self.totals(|one| {
            if let Some(of_strategy) = sums.get_mut(one.strategy as usize) {
                of_strategy[one.outcome as usize] += one.calls;
            }
        });
        let of = |(strategy, sums): (&Arc<str>, [u64; CountedOutcome::ALL.len()])| {
            let strategy = Arc::clone(strategy);
            CountedOutcome::ALL.map(|outcome| {
                let labels = [("strategy", &*strategy), ("outcome", outcome.name())];
                counter(&labels, sums[outcome as usize])
            })
        };
        self.layout.strategies.iter().zip(sums).flat_map(of).collect()
    }
}

impl Collector for SharedDecisionCounters {
    fn desc(&self) -> Vec<&Desc> {
        self.0.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let recorders = self.0.recorders.lock().clone();
        let sum = |of: &dyn Fn(&Recorder) -> &AtomicU64| -> u64 {
            recorders.iter().map(|recorder| of(recorder).load(Relaxed)).sum()
        };
        let rejections = Rejection::ALL.map(|reason| {
            counter(&[("reason", reason.name())], sum(&|recorder| &recorder.rejections[reason as usize]))
        });
        let errors: [u64; StoreError::KINDS.len()] =
            std::array::from_fn(|kind| sum(&|recorder| &recorder.store_errors[kind]));
        let by_kind =
            StoreError::KINDS.iter().zip(errors).map(|(kind, count)| counter(&[("kind", kind)], count));
        let calls = [
            counter(&[("result", "ok")], sum(&|recorder| &recorder.store_answers)),
            counter(&[("result", "error")], errors.iter().sum()),
        ];
        let by_method = |method: CountedMethod| {
            let parts = recorders.iter().map(|recorder| &recorder.latency[method as usize]);
            histogram(&[("method", method.name())], parts)
        };
        let metrics = [
            (MetricType::COUNTER, self.0.by_outcome()),
            (MetricType::HISTOGRAM, CountedMethod::ALL.map(by_method).to_vec()),
            (MetricType::COUNTER, rejections.to_vec()),
            (MetricType::COUNTER, calls.to_vec()),
            (MetricType::COUNTER, by_kind.collect()),
            (
                MetricType::HISTOGRAM,
                vec![histogram(&[], recorders.iter().map(|recorder| &recorder.store_latency))],
            ),
            (MetricType::COUNTER, self.0.of_leases(&recorders)),
            (MetricType::COUNTER, self.0.of_shadows(&recorders)),
        ];
        FAMILIES
            .iter()
            .zip(metrics)
            .filter(|(_, (_, metrics))| !metrics.is_empty())
            .map(|((name, help, _), (kind, metrics))| family(name, help, kind, metrics))
            .collect()
    }
}

/// A metric family. Registries refuse empty ones, so `metrics` has at least one.
pub(super) fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

pub(super) fn counter(labels: &[(&str, &str)], count: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(count as f64);
    let mut metric = labelled(labels);
    metric.set_counter(counter);
    metric
}

pub(super) fn labelled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

fn histogram<'a>(labels: &[(&str, &str)], parts: impl Iterator<Item = &'a Histogram>) -> Metric {
    let mut metric = labelled(labels);
    metric.set_histogram(Histogram::sum(parts));
    metric
}
