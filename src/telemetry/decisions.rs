//! The metrics of decisions: the workers' counters, added up when the metrics page is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::decision_log::DecisionLog;
use super::histogram::Histogram;
use super::recorder::{CountedLease, CountedMethod, CountedOutcome, Recorder, Rejection};
use crate::store::StoreError;

/// All workers' counters under the names that Prometheus knows.
pub(super) struct DecisionCounters {
    strategies: Vec<String>,
    /// Which of them have leases.
    leases: Vec<usize>,
    recorders: Mutex<Vec<Arc<Recorder>>>,
    log: OnceLock<Arc<DecisionLog>>,
    descriptions: Vec<Desc>,
}

/// What a registry takes: it wants to own what it collects from.
pub(super) struct SharedDecisionCounters(Arc<DecisionCounters>);

const FAMILIES: [(&str, &str, &[&str]); 7] = [
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
];

impl DecisionCounters {
    pub(super) fn new(strategies: Vec<String>, leases: Vec<usize>) -> Result<Self, prometheus::Error> {
        let describe = |(name, help, labels): &(&str, &str, &[&str])| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new((*name).to_owned(), (*help).to_owned(), labels, HashMap::new())
        };
        let descriptions = FAMILIES.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { strategies, leases, recorders: Mutex::default(), log: OnceLock::new(), descriptions })
    }

    pub(super) fn recorder(&self) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new(self.strategies.len(), self.log.get().cloned()));
        self.recorders.lock().push(Arc::clone(&recorder));
        recorder
    }

    /// The log that recorders know which are made from now on.
    pub(super) fn log_to(&self, log: &Arc<DecisionLog>) {
        // A second one is none: a process has one log.
        let _ = self.log.set(Arc::clone(log));
    }

    pub(super) fn collector(self: Arc<Self>) -> SharedDecisionCounters {
        SharedDecisionCounters(self)
    }

    /// Renewals and releases; nothing where no strategy has leases.
    fn of_leases(&self, recorders: &[Arc<Recorder>]) -> Vec<Metric> {
        let mut metrics = Vec::new();
        for &index in &self.leases {
            let strategy = self.strategies.get(index).map_or("", String::as_str);
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

    fn by_outcome(&self, recorders: &[Arc<Recorder>]) -> Vec<Metric> {
        let of = |(index, strategy): (usize, &String)| {
            let strategy = strategy.clone();
            CountedOutcome::ALL.map(|outcome| {
                let of_one = |recorder: &Arc<Recorder>| {
                    recorder
                        .strategies
                        .get(index)
                        .map_or(0, |counts| counts.0[outcome as usize].load(Relaxed))
                };
                let labels = [("strategy", strategy.as_str()), ("outcome", outcome.name())];
                counter(&labels, recorders.iter().map(of_one).sum())
            })
        };
        self.strategies.iter().enumerate().flat_map(of).collect()
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
            (MetricType::COUNTER, self.0.by_outcome(&recorders)),
            (MetricType::HISTOGRAM, CountedMethod::ALL.map(by_method).to_vec()),
            (MetricType::COUNTER, rejections.to_vec()),
            (MetricType::COUNTER, calls.to_vec()),
            (MetricType::COUNTER, by_kind.collect()),
            (
                MetricType::HISTOGRAM,
                vec![histogram(&[], recorders.iter().map(|recorder| &recorder.store_latency))],
            ),
            (MetricType::COUNTER, self.0.of_leases(&recorders)),
        ];
        FAMILIES
            .iter()
            .zip(metrics)
            .filter(|(_, (_, metrics))| !metrics.is_empty())
            .map(|((name, help, _), (kind, metrics))| family(name, help, kind, metrics))
            .collect()
    }
}

/// One family as the registry wants it. It refuses empty ones, so there is always a metric in it.
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
