//! The same counts under the names and labels of envoyproxy/ratelimit, for dashboards that ask for those.
//!
//! Its labels are the first two entries of a rule; rules that go deeper are added into those. A domain and a key with a dot
//! stay whole, where a name of statsd would be split.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::rules::{Domains, Rule};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Histogram, Metric, MetricFamily, MetricType};
use weir_node::feature::{NodeBuilder, StartError};
use weir_node::telemetry::CountedMethod;
use weir_node::telemetry::families::{counter, family, labelled};
use weir_node::telemetry::sampled::Sampled;

use super::labels::label;
use super::rules::{GIVEN, RuleCounts};
use super::{AnswerCode, EnvoyEvent, EnvoyMetrics};
use super::{local_cache, redis_pool};

/// The labels of a rule: the domain, and its first two entries.
type ReferenceLabels = (Box<str>, Box<str>, Option<Box<str>>);

/// The counters of the rules that serve now, by their labels there.
pub(super) type ByReferenceLabels = BTreeMap<ReferenceLabels, Vec<Arc<RuleCounts>>>;

/// Families by hits, and which count of a rule each shows.
const HITS: [(&str, &str, usize); 6] = [
    ("ratelimit_service_rate_limit_total_hits", "Hits on a rule, by its first two entries.", 0),
    ("ratelimit_service_rate_limit_over_limit", "Hits that were over the limit.", 1),
    ("ratelimit_service_rate_limit_near_limit", "Hits within the limit and near it.", 2),
    ("ratelimit_service_rate_limit_within_limit", "Hits within the limit.", 3),
    ("ratelimit_service_rate_limit_shadow_mode", "Hits over the limit that shadow mode let pass.", 4),
    (
        "ratelimit_service_rate_limit_over_limit_with_local_cache",
        "Hits over the limit for which Redis was not asked.",
        6,
    ),
];

const ERRORS: (&str, &str) = ("ratelimit_service_should_rate_limit_error", "Requests that failed.");
const REQUESTS: (&str, &str) = ("ratelimit_service_total_requests", "Requests.");
const TIMES: (&str, &str) = ("ratelimit_service_response_time_seconds", "Time of requests, in seconds.");
const LOADS: [(&str, &str, EnvoyEvent); 3] = [
    ("ratelimit_service_config_load_success", "Configurations that were taken.", EnvoyEvent::ConfigLoaded),
    ("ratelimit_service_config_load_error", "Configurations with mistakes.", EnvoyEvent::ConfigRefused),
    (
        "ratelimit_service_global_shadow_mode",
        "Requests over a limit that the global shadow mode let pass.",
        EnvoyEvent::GlobalShadow,
    ),
];

/// Shows the same counts under the names of envoyproxy/ratelimit, and those of the store that the reference has too.
pub fn show(node: &NodeBuilder<'_>, envoy: &EnvoyMetrics) -> Result<(), StartError> {
    let metrics = node.metrics().clone();
    let times = move || metrics.latency_of(CountedMethod::ShouldRateLimit);
    node.show(ReferenceMetrics::new(envoy.clone(), times)?)?;
    let Some(stats) = &node.storage.stats else { return Ok(()) };
    let has = stats();
    if has.connections.is_some() {
        let stats = stats.clone();
        let values = move || redis_pool::values(stats().connections.unwrap_or_default());
        node.show(Sampled::new(redis_pool::SERIES, values)?)?;
    }
    if has.denials.is_some() {
        let stats = stats.clone();
        let values = move || local_cache::values(stats().denials.unwrap_or_default());
        node.show(Sampled::new(local_cache::SERIES, values)?)?;
    }
    Ok(())
}

/// The collector. `times` returns how long requests took.
struct ReferenceMetrics<F> {
    metrics: EnvoyMetrics,
    times: F,
    descriptions: Vec<Desc>,
}

impl<F: Fn() -> Histogram + Send + Sync> ReferenceMetrics<F> {
    fn new(metrics: EnvoyMetrics, times: F) -> Result<Self, prometheus::Error> {
        let describe = |name: &str, help: &str, labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
        };
        let mut descriptions = Vec::new();
        for (name, help, _) in HITS {
            descriptions.push(describe(name, help, &["domain", "key1", "key2"])?);
        }
        descriptions.push(describe(ERRORS.0, ERRORS.1, &["err_type"])?);
        for (name, help) in [REQUESTS, TIMES] {
            descriptions.push(describe(name, help, &["grpc_method"])?);
        }
        for (name, help, _) in LOADS {
            descriptions.push(describe(name, help, &[])?);
        }
        Ok(Self { metrics, times, descriptions })
    }
}

impl<F: Fn() -> Histogram + Send + Sync> Collector for ReferenceMetrics<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let shared = &self.metrics.0;
        let live = shared.live.lock();
        let hits = HITS.map(|(name, help, index)| {
            let metric = |((domain, one, two), counts): (&ReferenceLabels, &Vec<Arc<RuleCounts>>)| {
                let mut labels = vec![("domain", &**domain), ("key1", &**one)];
                labels.extend(two.as_ref().map(|two| ("key2", &**two)));
                counter(&labels, counts.iter().map(|counts| counts.0.sum(index)).sum())
            };
            let has_hits = |(_, counts): &(&ReferenceLabels, &Vec<Arc<RuleCounts>>)| {
                counts.iter().any(|counts| counts.has_hits())
            };
            let with_hits = live.reference.iter().filter(has_hits);
            family(name, help, MetricType::COUNTER, with_hits.map(metric).collect())
        });
        let answers = |codes: &[AnswerCode]| -> u64 {
            let of = |code: &AnswerCode| {
                live.domains.values().map(|counts| counts.answers.sum(*code as usize)).sum::<u64>()
            };
            codes.iter().map(of).sum()
        };
        let errors = vec![
            counter(&[("err_type", "redis_error")], answers(&[AnswerCode::Unavailable])),
            counter(
                &[("err_type", "service_error")],
                answers(&[AnswerCode::InvalidArgument, AnswerCode::FailedPrecondition, AnswerCode::Internal]),
            ),
        ];
        let method = [("grpc_method", "ShouldRateLimit")];
        let mut times = labelled(&method);
        times.set_histogram((self.times)());
        let one = |(name, help): (&str, &str), kind, metric: Metric| family(name, help, kind, vec![metric]);
        let loads = LOADS.map(|(name, help, event)| {
            let count = counter(&[], shared.events.sum(event as usize));
            one((name, help), MetricType::COUNTER, count)
        });
        let others = [
            family(ERRORS.0, ERRORS.1, MetricType::COUNTER, errors),
            one(REQUESTS, MetricType::COUNTER, counter(&method, answers(&AnswerCode::ALL))),
            one(TIMES, MetricType::HISTOGRAM, times),
        ];
        hits.into_iter().chain(others).chain(loads).collect()
    }
}

/// The counters of `domains` by their labels there. Rules beyond the bound of rules are left out. Limits in requests
/// have one series for each domain, as no caller may make metrics.
pub(super) fn by_labels<'d>(
    domains: &Domains,
    counts: &[Arc<RuleCounts>],
    other: &Arc<RuleCounts>,
    given: impl Iterator<Item = (&'d str, &'d Arc<RuleCounts>)>,
) -> ByReferenceLabels {
    let mut all = ByReferenceLabels::new();
    for (rule, counts) in domains.rules().iter().zip(counts) {
        if Arc::ptr_eq(counts, other) {
            continue;
        }
        let with = all.entry(labels_of(rule)).or_default();
        // Two rules whose labels are cut alike share their counters.
        if !with.iter().any(|known| Arc::ptr_eq(known, counts)) {
            with.push(Arc::clone(counts));
        }
    }
    for (domain, counts) in given {
        let labels = (label(domain).as_ref().into(), GIVEN.into(), None);
        all.entry(labels).or_default().push(Arc::clone(counts));
    }
    all
}

fn labels_of(rule: &Rule) -> ReferenceLabels {
    let entry =
        |index: usize| rule.entries.get(index).map(|entry| label(&plain(&entry.path)).as_ref().into());
    (label(&rule.domain).as_ref().into(), entry(0).unwrap_or_default(), entry(1))
}

/// A text as labels there have it: `:` and `|` are `_`, and so are the dots of IPv4 addresses.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let follows = plain.chars().last().is_some_and(|last| last.is_ascii_digit() || last == '.');
        match ipv4(rest).filter(|_| !follows) {
            Some(length) => {
                let (address, after) = rest.split_at(length);
                plain.push_str(&address.replace('.', "_"));
                rest = after;
            }
            None => {
                plain.push(if matches!(char, ':' | '|') { '_' } else { char });
                rest = rest.get(char.len_utf8()..).unwrap_or_default();
            }
        }
    }
    plain
}

/// The length of an IPv4 address at the start of a text.
fn ipv4(text: &str) -> Option<usize> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let address = text.get(..end)?;
    address.parse::<std::net::Ipv4Addr>().ok().map(|_| end)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn labels_are_those_of_the_reference() {
        for (text, expected) in [
            ("route_one", "route_one"),
            ("a:b|c", "a_b_c"),
            ("masked_remote_address_10.0.0.0/8", "masked_remote_address_10_0_0_0/8"),
            ("www.example.com", "www.example.com"),
            ("1.2.3", "1.2.3"),
            ("v1.2.3.4.5", "v1.2.3.4.5"),
            ("é:10.1.2.3", "é_10_1_2_3"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
