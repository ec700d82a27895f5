//! What the rules of Envoy's configuration count, across reloads.
//!
//! A rule that is read again goes on with its counters. The labels are paths of configured rules, never
//! values of requests; beyond [`MAX_RULES`] all further ones count together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::decisions::{counter, family};
use crate::envoy::Domains;

/// Rules that have counters of their own within the life of a process.
const MAX_RULES: usize = 10_000;

/// The label of rules beyond the bound.
const OTHER: &str = "other";

/// The label of limits that requests brought along.
const GIVEN: &str = "override";

/// The counters of all rules, and of what no rule counts.
#[derive(Debug, Clone)]
pub struct EnvoyMetrics(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    workers: usize,
    by_path: Mutex<BTreeMap<Box<str>, Arc<RuleCounts>>>,
    other: Arc<RuleCounts>,
    given: Arc<RuleCounts>,
    events: Lines,
    descriptions: Vec<Desc>,
}

/// The counters of one rule.
#[derive(Debug)]
pub struct RuleCounts(Lines);

/// A line per worker, so that they do not write to one another's.
#[derive(Debug)]
struct Lines(Box<[Line]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; 6]);

/// One worker's view.
#[derive(Debug, Clone)]
pub struct EnvoyRecorder {
    metrics: EnvoyMetrics,
    worker: usize,
}

/// What hits did to a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hits {
    /// All.
    pub total: u64,
    /// Those that were over the limit.
    pub over: u64,
    /// Those within it that came near.
    pub near: u64,
    /// Those that passed.
    pub within: u64,
    /// Those over it that passed all the same, because the rule is in shadow mode.
    pub shadow: u64,
}

/// What is counted beside the hits of rules.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A domain that no file has.
    UnknownDomain,
    /// A store that could not decide.
    StoreError,
    /// An answer that the global shadow mode turned.
    GlobalShadow,
    /// Files that were read and are used.
    ConfigLoaded,
    /// Files that were refused.
    ConfigRefused,
}

const RULE_FAMILIES: [(&str, &str); 5] = [
    ("weir_envoy_hits_total", "Hits on a rule."),
    ("weir_envoy_over_limit_total", "Hits that were over a rule's limit."),
    ("weir_envoy_near_limit_total", "Hits within a rule's limit, above the share of it that counts as near."),
    ("weir_envoy_within_limit_total", "Hits within a rule's limit."),
    ("weir_envoy_shadow_mode_total", "Hits over a rule's limit that passed because of its shadow mode."),
];

const EVENT_FAMILIES: [(&str, &str); 3] = [
    ("weir_envoy_unknown_domain_total", "Requests for a domain that no file has."),
    ("weir_envoy_store_errors_total", "Descriptors that the store could not decide."),
    (
        "weir_envoy_global_shadow_total",
        "Requests over a limit that passed because of the global shadow mode.",
    ),
];

const LOADS: (&str, &str) = ("weir_envoy_config_loads_total", "Times that the files were read, by result.");

impl EnvoyMetrics {
    pub(super) fn new(workers: usize) -> Result<Self, prometheus::Error> {
        let describe = |name: &str, help: &str, labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
        };
        let rules = RULE_FAMILIES.iter().map(|(name, help)| describe(name, help, &["rule"]));
        let events = EVENT_FAMILIES.iter().map(|(name, help)| describe(name, help, &[]));
        let loads = std::iter::once(describe(LOADS.0, LOADS.1, &["result"]));
        let descriptions = rules.chain(events).chain(loads).collect::<Result<_, _>>()?;
        let counts = || Arc::new(RuleCounts(Lines::new(workers)));
        let (other, given) = (counts(), counts());
        let events = Lines::new(workers);
        let by_path = Mutex::default();
        Ok(Self(Arc::new(Shared { workers, by_path, other, given, events, descriptions })))
    }

    /// The view of worker number `worker`.
    #[must_use]
    pub fn recorder(&self, worker: usize) -> EnvoyRecorder {
        EnvoyRecorder { metrics: self.clone(), worker }
    }

    /// The counters of every rule, in the order of their index.
    #[must_use]
    pub fn of(&self, domains: &Domains) -> Box<[Arc<RuleCounts>]> {
        let mut by_path = self.0.by_path.lock();
        let mut counts = |path: &str| {
            if let Some(counts) = by_path.get(path) {
                return Arc::clone(counts);
            }
            if by_path.len() == MAX_RULES {
                return Arc::clone(&self.0.other);
            }
            let counts = Arc::new(RuleCounts(Lines::new(self.0.workers)));
            by_path.insert(path.into(), Arc::clone(&counts));
            counts
        };
        domains.rules().iter().map(|rule| counts(&rule.path)).collect()
    }

    /// Counts what happened outside of the workers.
    pub fn happened(&self, event: Event) {
        self.0.events.add(0, event as usize, 1);
    }
}

impl EnvoyRecorder {
    /// Counts hits on a rule; `None` is a limit that the request brought along.
    pub fn hit(&self, rule: Option<&RuleCounts>, hits: Hits) {
        let counts = rule.unwrap_or(&self.metrics.0.given);
        let Hits { total, over, near, within, shadow } = hits;
        for (index, count) in [total, over, near, within, shadow].into_iter().enumerate() {
            if count > 0 {
                counts.0.add(self.worker, index, count);
            }
        }
    }

    /// Counts what happened.
    pub fn happened(&self, event: Event) {
        self.metrics.0.events.add(self.worker, event as usize, 1);
    }
}

impl Lines {
    fn new(workers: usize) -> Self {
        Self((0..workers.max(1)).map(|_| Line::default()).collect())
    }

    fn add(&self, worker: usize, index: usize, count: u64) {
        self.0[worker % self.0.len()].0[index].fetch_add(count, Relaxed);
    }

    fn sum(&self, index: usize) -> u64 {
        self.0.iter().map(|line| line.0[index].load(Relaxed)).fold(0, u64::wrapping_add)
    }
}

impl Collector for EnvoyMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.0.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let by_path = self.0.by_path.lock();
        let fixed = [(OTHER, &self.0.other), (GIVEN, &self.0.given)];
        let all = || by_path.iter().map(|(path, counts)| (&**path, counts)).chain(fixed);
        let rules = RULE_FAMILIES.iter().enumerate().map(|(index, (name, help))| {
            let metric =
                |(path, counts): (&str, &Arc<RuleCounts>)| counter(&[("rule", path)], counts.0.sum(index));
            family(name, help, MetricType::COUNTER, all().map(metric).collect())
        });
        let event = |event: Event| self.0.events.sum(event as usize);
        let kinds = [Event::UnknownDomain, Event::StoreError, Event::GlobalShadow];
        let events = EVENT_FAMILIES.iter().zip(kinds).map(|((name, help), kind)| {
            family(name, help, MetricType::COUNTER, vec![counter(&[], event(kind))])
        });
        let loads: Vec<Metric> = vec![
            counter(&[("result", "ok")], event(Event::ConfigLoaded)),
            counter(&[("result", "error")], event(Event::ConfigRefused)),
        ];
        let loads = std::iter::once(family(LOADS.0, LOADS.1, MetricType::COUNTER, loads));
        rules.chain(events).chain(loads).collect()
    }
}
