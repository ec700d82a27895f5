//! Metrics of Envoy's requests, kept across reloads of its files.
//!
//! Labels are domains and rules of the files, never values of requests. The series of a rule appear with its first hit. A rule
//! that is loaded again keeps its counters; a removed one is no longer exported.

mod domains;
mod labels;
mod lines;
mod reference;
mod rules;
mod xds;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::files::RefusedDomain;
use crate::rules::{Domains, Rule};
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::proto::Metric;
use weir_node::telemetry::families::{FamilyCollector, FamilySpec, counter, gauge};
use weir_units::Micros;

use self::domains::UNKNOWN;
pub use self::domains::{AnswerCode, DomainCounts};
use self::labels::label;
pub use self::labels::short_digest;
use self::lines::Lines;
use self::reference::ByReferenceLabels;
pub use self::reference::show as show_reference;
use self::rules::{ByRule, GIVEN, OTHER};
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

const RULE: &[&str] = &["domain", "rule"];

const FAMILIES: [FamilySpec; 18] = [
    FamilySpec::counter(
        "weir_envoy_requests_total",
        "Requests by domain and gRPC status code.",
        &["domain", "code"],
    ),
    FamilySpec::counter("weir_envoy_hits_total", "Hits on a rule.", RULE),
    FamilySpec::counter("weir_envoy_over_limit_total", "Hits that were over a rule's limit.", RULE),
    FamilySpec::counter(
        "weir_envoy_near_limit_total",
        "Hits within a rule's limit, above the share of it that counts as near.",
        RULE,
    ),
    FamilySpec::counter("weir_envoy_within_limit_total", "Hits within a rule's limit.", RULE),
    FamilySpec::counter(
        "weir_envoy_shadow_mode_total",
        "Hits over a rule's limit that passed because of its shadow mode.",
        RULE,
    ),
    FamilySpec::counter(
        "weir_envoy_degraded_total",
        "Hits that a failure policy answered, because the store could not.",
        RULE,
    ),
    FamilySpec::counter(
        "weir_envoy_over_limit_cached_total",
        "Hits over a rule's limit for which the store was not asked.",
        RULE,
    ),
    FamilySpec::counter("weir_envoy_unknown_domain_total", "Requests for a domain that no file has.", &[]),
    FamilySpec::counter("weir_envoy_store_errors_total", "Descriptors that the store could not decide.", &[]),
    FamilySpec::counter(
        "weir_envoy_global_shadow_total",
        "Requests over a limit that passed because of the global shadow mode.",
        &[],
    ),
    FamilySpec::counter(
        "weir_envoy_config_loads_total",
        "Times that the files were read, by result.",
        &["result"],
    ),
    FamilySpec::gauge("weir_envoy_rules", "Rules of the files that serve now.", &[]),
    FamilySpec::gauge(
        "weir_envoy_config_last_load_timestamp_seconds",
        "When the files were read last and not refused, in seconds since 1970; 0 is never.",
        &[],
    ),
    FamilySpec::gauge("weir_envoy_overlay_unmatched", "Entries of envoy.rules that match no rule.", &[]),
    FamilySpec::gauge(
        "weir_envoy_domain_refused",
        "Domains whose newest configuration has a mistake: 1 if an older one serves, 2 if none does.",
        &["domain"],
    ),
    FamilySpec::gauge("weir_envoy_limit", "Requests that a rule lets pass in each of its periods.", RULE),
    FamilySpec::gauge("weir_envoy_limit_period_seconds", "The period of a rule's limit, in seconds.", RULE),
];

/// Most refused domains with a series of their own.
const MAX_REFUSED: usize = 1000;

impl EnvoyMetrics {
    /// Creates the counters for this number of workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let unknown = DomainCounts::new(workers);
        let domains = [(UNKNOWN.into(), Arc::clone(&unknown))].into();
        Self(Arc::new(SharedEnvoyCounters {
            workers,
            live: Mutex::new(Live { domains, ..Live::default() }),
            other: RuleCounts::new(workers),
            unknown,
            events: Lines::new(workers),
            loaded_at: AtomicU64::default(),
            unmatched: AtomicU64::default(),
            refused: Mutex::default(),
        }))
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

impl EnvoyMetrics {
    /// Returns the collector of the counters.
    pub fn collector(&self) -> Result<impl Collector + 'static, prometheus::Error> {
        let metrics = self.clone();
        FamilyCollector::new(FAMILIES, move || metrics.families())
    }

    /// The metrics of all families.
    fn families(&self) -> [Vec<Metric>; 18] {
        let live = self.0.live.lock();
        let requests = live.domains.iter().flat_map(|(name, counts)| {
            AnswerCode::ALL.map(|code| {
                let labels = [("domain", &*label(name)), ("code", code.name())];
                counter(&labels, counts.answers.sum(code as usize))
            })
        });
        let [hits, over, near, within, shadow, degraded, cached] = live.hits(&self.0.other);
        let count = |event: EnvoyEvent| self.0.events.sum(event as usize);
        let event = |event: EnvoyEvent| vec![counter(&[], count(event))];
        let loads = vec![
            counter(&[("result", "ok")], count(EnvoyEvent::ConfigLoaded)),
            counter(&[("result", "error")], count(EnvoyEvent::ConfigRefused)),
        ];
        let number = |count: &AtomicU64| vec![gauge(&[], count.load(Relaxed) as f64)];
        let refused = self.0.refused.lock().clone();
        let refused = refused.iter().map(|RefusedDomain { name, goes_on }| {
            gauge(&[("domain", &*label(name))], if *goes_on { 1.0 } else { 2.0 })
        });
        [
            requests.collect(),
            hits,
            over,
            near,
            within,
            shadow,
            degraded,
            cached,
            event(EnvoyEvent::UnknownDomain),
            event(EnvoyEvent::StoreError),
            event(EnvoyEvent::GlobalShadow),
            loads,
            vec![gauge(&[], live.count as f64)],
            number(&self.0.loaded_at),
            number(&self.0.unmatched),
            refused.collect(),
            live.limit_gauges(|limit| f64::from(limit.requests)),
            live.limit_gauges(|limit| limit.period_s as f64),
        ]
    }
}

impl Live {
    /// The counters of hits on rules with hits, on overrides by domain, and on rules beyond the bound, by result.
    fn hits(&self, other: &RuleCounts) -> [Vec<Metric>; Hits::COUNTS] {
        let named = self.rules.iter().filter(|(_, counts)| counts.has_hits());
        let named = named.map(|((domain, rule), counts)| (label(domain), &**rule, &**counts));
        let given = self.domains.iter().filter(|(name, _)| &***name != UNKNOWN);
        let given = given.map(|(name, counts)| (label(name), GIVEN, &*counts.given));
        let rules: Vec<_> = named.chain(given).chain([(OTHER.into(), OTHER, other)]).collect();
        std::array::from_fn(|index| {
            let metric = |(domain, rule, counts): &(Cow<'_, str>, &str, &RuleCounts)| {
                counter(&[("domain", domain), ("rule", rule)], counts.0.sum(index))
            };
            rules.iter().map(metric).collect()
        })
    }

    /// A gauge of the limit of each rule with hits.
    fn limit_gauges(&self, value: fn(&RuleLimit) -> f64) -> Vec<Metric> {
        let with_hits = self.limits.iter().filter(|limit| limit.counts.has_hits());
        let gauge =
            |limit: &RuleLimit| gauge(&[("domain", &*limit.domain), ("rule", &*limit.rule)], value(limit));
        with_hits.map(gauge).collect()
    }
}
