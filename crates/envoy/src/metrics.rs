//! Metrics of Envoy's requests, kept across reloads of its files.
//!
//! Labels are domains and rules of the files, never values of requests. The series of a rule appear with its first hit. A rule
//! that is loaded again keeps its counters; a removed one is no longer exported.

mod domains;
mod labels;
mod lines;
mod local_cache;
mod redis_pool;
mod reference;
mod rules;
mod xds;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::files::RefusedDomain;
use crate::rules::{Domains, Rule};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, Metric, MetricFamily, MetricType};
use weir_node::telemetry::families::{counter, family, labelled};
use weir_node::telemetry::sampled::gauge;
use weir_units::Micros;

use self::domains::UNKNOWN;
pub use self::domains::{AnswerCode, DomainCounts};
use self::labels::label;
pub use self::labels::short_digest;
use self::lines::Lines;
use self::reference::ByReferenceLabels;
pub use self::reference::show as show_reference;
use self::rules::{ByRule, GIVEN, OTHER, RULE_FAMILIES};
pub use self::rules::{Hits, RuleCounts};
pub use self::xds::XdsMetrics;

/// Counters of all rules, domains and events.
#[derive(Debug, Clone)]
pub struct EnvoyMetrics(Arc<SharedEnvoyCounters>);

#[derive(Debug)]
struct SharedEnvoyCounters {
    workers: usize,
    live: Mutex<Live>,
    /// Shared by rules beyond `MAX_RULES`.
    other: Arc<RuleCounts>,
    unknown: Arc<DomainCounts>,
    events: Lines,
    /// Time of the last load of the files, in seconds; 0 if never.
    loaded_at: AtomicU64,
    /// Entries of the overlay that match no rule.
    unmatched: AtomicU64,
    /// Domains whose newest version has a mistake, at most [`MAX_REFUSED`].
    refused: Mutex<Vec<RefusedDomain>>,
    descriptions: Vec<Desc>,
}

/// Counters of the files that serve now.
#[derive(Debug, Default)]
struct Live {
    rules: ByRule,
    domains: BTreeMap<Box<str>, Arc<DomainCounts>>,
    count: usize,
    /// The same rules by the labels of the reference.
    reference: ByReferenceLabels,
    limits: Vec<RuleLimit>,
}

/// The limit of a rule.
#[derive(Debug)]
struct RuleLimit {
    counts: Arc<RuleCounts>,
    domain: Box<str>,
    rule: Box<str>,
    requests: u32,
    period_s: u64,
}

/// The counters of one set of files: of each rule and of each domain, in the order of their index.
#[derive(Debug)]
pub struct FileCounts {
    /// Of rules.
    pub rules: Box<[Arc<RuleCounts>]>,
    /// Of domains.
    pub domains: Box<[Arc<DomainCounts>]>,
}

/// One worker's handle.
#[derive(Debug, Clone)]
pub struct EnvoyRecorder {
    metrics: EnvoyMetrics,
    worker: usize,
}

/// Events counted besides hits on rules.
#[derive(Debug, Clone, Copy)]
pub enum EnvoyEvent {
    /// A request for an unknown domain.
    UnknownDomain,
    /// The store failed to decide.
    StoreError,
    /// The global shadow mode let a request over its limit pass.
    GlobalShadow,
    /// Files were loaded.
    ConfigLoaded,
    /// Files were rejected.
    ConfigRefused,
}

const REQUESTS: (&str, &str) = ("weir_envoy_requests_total", "Requests by domain and gRPC status code.");

const EVENT_FAMILIES: [(&str, &str); 3] = [
    ("weir_envoy_unknown_domain_total", "Requests for a domain that no file has."),
    ("weir_envoy_store_errors_total", "Descriptors that the store could not decide."),
    (
        "weir_envoy_global_shadow_total",
        "Requests over a limit that passed because of the global shadow mode.",
    ),
];

const LOADS: (&str, &str) = ("weir_envoy_config_loads_total", "Times that the files were read, by result.");
const RULES: (&str, &str) = ("weir_envoy_rules", "Rules of the files that serve now.");
const LOADED_AT: (&str, &str) = (
    "weir_envoy_config_last_load_timestamp_seconds",
    "When the files were read last and not refused, in seconds since 1970; 0 is never.",
);

const LIMIT: (&str, &str) = ("weir_envoy_limit", "Requests that a rule lets pass in each of its periods.");
const PERIOD: (&str, &str) = ("weir_envoy_limit_period_seconds", "The period of a rule's limit, in seconds.");

const UNMATCHED: (&str, &str) =
    ("weir_envoy_overlay_unmatched", "Entries of envoy.rules that match no rule.");

const REFUSED: (&str, &str) = (
    "weir_envoy_domain_refused",
    "Domains whose newest configuration has a mistake: 1 if an older one serves, 2 if none does.",
);

/// Most refused domains with a series of their own.
const MAX_REFUSED: usize = 1000;

impl EnvoyMetrics {
    /// Creates the counters for this number of workers.
    pub fn new(workers: usize) -> Result<Self, prometheus::Error> {
        let describe = |(name, help): &(&str, &str), labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new((*name).to_owned(), (*help).to_owned(), labels, HashMap::new())
        };
        let mut descriptions =
            vec![describe(&REQUESTS, &["domain", "code"])?, describe(&LOADS, &["result"])?];
        for one in &RULE_FAMILIES {
            descriptions.push(describe(one, &["domain", "rule"])?);
        }
        descriptions.push(describe(&REFUSED, &["domain"])?);
        for one in [&LIMIT, &PERIOD] {
            descriptions.push(describe(one, &["domain", "rule"])?);
        }
        for one in EVENT_FAMILIES.iter().chain([&RULES, &LOADED_AT, &UNMATCHED]) {
            descriptions.push(describe(one, &[])?);
        }
        let unknown = DomainCounts::new(workers);
        let domains = [(UNKNOWN.into(), Arc::clone(&unknown))].into();
        let live = Mutex::new(Live { domains, ..Live::default() });
        let (other, events) = (RuleCounts::new(workers), Lines::new(workers));
        let loaded_at = AtomicU64::default();
        Ok(Self(Arc::new(SharedEnvoyCounters {
            workers,
            live,
            other,
            unknown,
            events,
            loaded_at,
            unmatched: AtomicU64::default(),
            refused: Mutex::default(),
            descriptions,
        })))
    }

    /// The handle of worker number `worker`.
    #[must_use]
    pub fn recorder(&self, worker: usize) -> EnvoyRecorder {
        EnvoyRecorder { metrics: self.clone(), worker }
    }

    /// The counters of `domains`, which are exported from now on.
    #[must_use]
    pub fn counts_of(&self, domains: &Domains) -> FileCounts {
        let SharedEnvoyCounters { workers, live, other, .. } = &*self.0;
        let mut live = live.lock();
        let (by_rule, rules) = rules::renewed(&live.rules, domains, other, *workers);
        let by_domain = domains::renewed(&live.domains, domains, *workers);
        let mut all: Vec<_> = domains.iter().map(|domain| (domain.index(), domain.name())).collect();
        all.sort_unstable();
        let counts = all.into_iter().filter_map(|(_, name)| by_domain.get(name).cloned()).collect();
        let given = by_domain.iter().filter(|(name, _)| &***name != UNKNOWN);
        let given = given.map(|(name, counts)| (&**name, &counts.given));
        let reference = reference::by_labels(domains, &rules, other, given);
        let limits = domains.rules().iter().zip(&rules).filter(|(_, counts)| !Arc::ptr_eq(counts, other));
        let limits = limits.filter_map(|(rule, counts)| limit_of(rule, counts)).collect();
        let count = domains.rules().len();
        *live = Live { rules: by_rule, domains: by_domain, count, reference, limits };
        FileCounts { rules, domains: counts }
    }

    /// Counts an event outside of the workers.
    pub fn happened(&self, event: EnvoyEvent) {
        self.0.events.add(0, event as usize, 1);
    }

    /// Sets the domains whose newest version has a mistake.
    pub fn refused(&self, domains: &[RefusedDomain]) {
        *self.0.refused.lock() = domains.iter().take(MAX_REFUSED).cloned().collect();
    }

    /// Sets how many entries of the overlay match no rule.
    pub fn unmatched(&self, entries: usize) {
        self.0.unmatched.store(entries as u64, Relaxed);
    }

    /// Records that files were loaded at this time.
    pub fn loaded(&self, now: Micros) {
        self.0.loaded_at.store(now.0 / 1_000_000, Relaxed);
        self.happened(EnvoyEvent::ConfigLoaded);
    }
}

fn limit_of(rule: &Rule, counts: &Arc<RuleCounts>) -> Option<RuleLimit> {
    let limit = rule.limit.as_ref()?;
    Some(RuleLimit {
        counts: Arc::clone(counts),
        domain: label(&rule.domain).as_ref().into(),
        rule: label(&rule.label(&[GIVEN, OTHER])).as_ref().into(),
        requests: limit.requests_per_unit(),
        period_s: limit.unit().seconds().saturating_mul(limit.unit_multiplier().into()),
    })
}

/// The gauges of limits of rules with hits: requests and periods.
fn limit_families(limits: &[RuleLimit]) -> [MetricFamily; 2] {
    let of = |(name, help): (&str, &str), value: fn(&RuleLimit) -> f64| {
        let metric = |limit: &RuleLimit| {
            let mut metric = labelled(&[("domain", &*limit.domain), ("rule", &*limit.rule)]);
            let mut gauge = Gauge::default();
            gauge.set_value(value(limit));
            metric.set_gauge(gauge);
            metric
        };
        let with_hits = limits.iter().filter(|limit| limit.counts.has_hits());
        family(name, help, MetricType::GAUGE, with_hits.map(metric).collect())
    };
    [of(LIMIT, |limit| f64::from(limit.requests)), of(PERIOD, |limit| limit.period_s as f64)]
}

impl EnvoyRecorder {
    /// Counts hits on a rule.
    pub fn hit(&self, rule: &RuleCounts, hits: Hits) {
        rule.add(self.worker, hits);
    }

    /// Counts hits on an override in a request for this domain.
    pub fn hit_given(&self, domain: &DomainCounts, hits: Hits) {
        domain.given.add(self.worker, hits);
    }

    /// Counts how a request ended; `None` for an unknown domain.
    pub fn answered(&self, domain: Option<&DomainCounts>, code: AnswerCode) {
        let counts = domain.unwrap_or(&self.metrics.0.unknown);
        counts.answers.add(self.worker, code as usize, 1);
    }

    /// Counts an event.
    pub fn happened(&self, event: EnvoyEvent) {
        self.metrics.0.events.add(self.worker, event as usize, 1);
    }
}

impl Collector for EnvoyMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.0.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let live = self.0.live.lock();
        let named = live.rules.iter().filter(|(_, counts)| counts.has_hits());
        let named = named.map(|((domain, rule), counts)| (label(domain), &**rule, &**counts));
        let given = live.domains.iter().filter(|(name, _)| &***name != UNKNOWN);
        let given = given.map(|(name, counts)| (label(name), GIVEN, &*counts.given));
        let rules: Vec<_> = named.chain(given).chain([(OTHER.into(), OTHER, &*self.0.other)]).collect();
        let rules = RULE_FAMILIES.iter().enumerate().map(|(index, (name, help))| {
            let metric = |(domain, rule, counts): &(Cow<'_, str>, &str, &RuleCounts)| {
                counter(&[("domain", domain), ("rule", rule)], counts.0.sum(index))
            };
            family(name, help, MetricType::COUNTER, rules.iter().map(metric).collect())
        });
        let requests = live.domains.iter().flat_map(|(name, counts)| {
            let of = |code: AnswerCode| {
                counter(
                    &[("domain", &*label(name)), ("code", code.name())],
                    counts.answers.sum(code as usize),
                )
            };
            AnswerCode::ALL.map(of)
        });
        let requests = family(REQUESTS.0, REQUESTS.1, MetricType::COUNTER, requests.collect());
        let event = |event: EnvoyEvent| self.0.events.sum(event as usize);
        let kinds = [EnvoyEvent::UnknownDomain, EnvoyEvent::StoreError, EnvoyEvent::GlobalShadow];
        let events = EVENT_FAMILIES.iter().zip(kinds).map(|((name, help), kind)| {
            family(name, help, MetricType::COUNTER, vec![counter(&[], event(kind))])
        });
        let loads: Vec<Metric> = vec![
            counter(&[("result", "ok")], event(EnvoyEvent::ConfigLoaded)),
            counter(&[("result", "error")], event(EnvoyEvent::ConfigRefused)),
        ];
        let number = |count: &AtomicU64| count.load(Relaxed) as f64;
        let gauges = [
            (RULES, live.count as f64),
            (LOADED_AT, number(&self.0.loaded_at)),
            (UNMATCHED, number(&self.0.unmatched)),
        ];
        let gauges =
            gauges.map(|((name, help), value)| family(name, help, MetricType::GAUGE, vec![gauge(value)]));
        let loads = family(LOADS.0, LOADS.1, MetricType::COUNTER, loads);
        let refused = self.0.refused.lock().clone();
        let refused = refused.iter().map(|RefusedDomain { name, goes_on }| {
            let (mut metric, mut gauge) = (labelled(&[("domain", &*label(name))]), Gauge::default());
            gauge.set_value(if *goes_on { 1.0 } else { 2.0 });
            metric.set_gauge(gauge);
            metric
        });
        let refused = family(REFUSED.0, REFUSED.1, MetricType::GAUGE, refused.collect());
        std::iter::once(requests)
            .chain(rules)
            .chain(events)
            .chain([loads])
            .chain(gauges)
            .chain([refused])
            .chain(limit_families(&live.limits))
            .collect()
    }
}
