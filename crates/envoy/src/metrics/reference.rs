//! The same counts under the names and labels of envoyproxy/ratelimit, for dashboards that ask for those.
//!
//! Its labels are the first two entries of a rule; rules that go deeper are added into those. A domain and a key with a dot
//! stay whole, where a name of statsd would be split.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rules::{Domains, Rule};
use prometheus::proto::{Histogram, Metric};
use weir_node::feature::{NodeBuilder, StartError};
use weir_node::telemetry::CountedMethod;
use weir_node::telemetry::families::{FamilyCollector, FamilySpec, counter, labelled};
use weir_node::telemetry::sampled::{Series, sampled};
use weir_store::backend::{ConnectionStats, DenialStats};

use super::labels::label;
use super::rules::{GIVEN, RuleCounts};
use super::{AnswerCode, EnvoyEvent, EnvoyMetrics};

/// The labels of a rule: the domain, and its first two entries.
type ReferenceLabels = (Box<str>, Box<str>, Option<Box<str>>);

/// The counters of the rules that serve now, by their labels there.
pub(super) type ByReferenceLabels = BTreeMap<ReferenceLabels, Vec<Arc<RuleCounts>>>;

/// The count of a rule that each family of hits shows.
const HITS: [usize; 6] = [0, 1, 2, 3, 4, 6];

const RULE: &[&str] = &["domain", "key1", "key2"];

/// The families of hits, and those of requests and loads.
const FAMILIES: [FamilySpec; 12] = [
    FamilySpec::counter(
        "ratelimit_service_rate_limit_total_hits",
        "Hits on a rule, by its first two entries.",
        RULE,
    ),
    FamilySpec::counter("ratelimit_service_rate_limit_over_limit", "Hits that were over the limit.", RULE),
    FamilySpec::counter(
        "ratelimit_service_rate_limit_near_limit",
        "Hits within the limit and near it.",
        RULE,
    ),
    FamilySpec::counter("ratelimit_service_rate_limit_within_limit", "Hits within the limit.", RULE),
    FamilySpec::counter(
        "ratelimit_service_rate_limit_shadow_mode",
        "Hits over the limit that shadow mode let pass.",
        RULE,
    ),
    FamilySpec::counter(
        "ratelimit_service_rate_limit_over_limit_with_local_cache",
        "Hits over the limit for which Redis was not asked.",
        RULE,
    ),
    FamilySpec::counter("ratelimit_service_should_rate_limit_error", "Requests that failed.", &["err_type"]),
    FamilySpec::counter("ratelimit_service_total_requests", "Requests.", &["grpc_method"]),
    FamilySpec::histogram(
        "ratelimit_service_response_time_seconds",
        "Time of requests, in seconds.",
        &["grpc_method"],
    ),
    FamilySpec::counter("ratelimit_service_config_load_success", "Configurations that were taken.", &[]),
    FamilySpec::counter("ratelimit_service_config_load_error", "Configurations with mistakes.", &[]),
    FamilySpec::counter(
        "ratelimit_service_global_shadow_mode",
        "Requests over a limit that the global shadow mode let pass.",
        &[],
    ),
];

const REDIS_POOL: [Series; 3] = [
    Series::gauge("ratelimit_redis_pool_cx_active", "Connections to Redis that are open now."),
    Series::counter("ratelimit_redis_pool_cx_total", "Connections to Redis that were opened."),
    Series::counter("ratelimit_redis_pool_cx_local_close", "Connections to Redis that have ended."),
];

const LOCAL_CACHE: [Series; 3] = [
    Series::gauge("ratelimit_localcache_hitCount", "Calls that the cache of denials answered."),
    Series::gauge("ratelimit_localcache_missCount", "Calls for which Redis was asked."),
    Series::gauge("ratelimit_localcache_lookupCount", "Lookups in the cache of denials."),
];

/// Shows the same counts under the names of envoyproxy/ratelimit, and those of the store that the reference has too.
pub fn show(node: &NodeBuilder<'_>, envoy: &EnvoyMetrics) -> Result<(), StartError> {
    let (metrics, counters) = (node.metrics().clone(), envoy.clone());
    let read = move || families(&counters, metrics.latency_of(CountedMethod::ShouldRateLimit));
    node.show(FamilyCollector::new(FAMILIES, read)?)?;
    let Some(stats) = &node.storage.stats else { return Ok(()) };
    let has = stats();
    if has.connections.is_some() {
        let stats = stats.clone();
        let values = move || {
            let ConnectionStats { opened, closed } = stats().connections.unwrap_or_default();
            [opened.saturating_sub(closed) as f64, opened as f64, closed as f64]
        };
        node.show(sampled(REDIS_POOL, values)?)?;
    }
    if has.denials.is_some() {
        let stats = stats.clone();
        let values = move || {
            let DenialStats { hits, misses } = stats().denials.unwrap_or_default();
            [hits as f64, misses as f64, hits.saturating_add(misses) as f64]
        };
        node.show(sampled(LOCAL_CACHE, values)?)?;
    }
    Ok(())
}

/// The metrics of all families. `took` are the times of requests.
fn families(envoy: &EnvoyMetrics, took: Histogram) -> [Vec<Metric>; 12] {
    let live = envoy.0.live.lock();
    let [total, over, near, within, shadow, cached] = HITS.map(|index| {
        let with_hits = live.reference.iter().filter(|(_, counts)| counts.iter().any(|one| one.has_hits()));
        let metric = |((domain, one, two), counts): (&ReferenceLabels, &Vec<Arc<RuleCounts>>)| {
            let mut labels = vec![("domain", &**domain), ("key1", &**one)];
            labels.extend(two.as_ref().map(|two| ("key2", &**two)));
            counter(&labels, counts.iter().map(|counts| counts.0.sum(index)).sum())
        };
        with_hits.map(metric).collect()
    });
    let answers = |codes: &[AnswerCode]| -> u64 {
        let with_code = |code: &AnswerCode| {
            live.domains.values().map(|counts| counts.answers.sum(*code as usize)).sum::<u64>()
        };
        codes.iter().map(with_code).sum()
    };
    let mistakes = [AnswerCode::InvalidArgument, AnswerCode::FailedPrecondition, AnswerCode::Internal];
    let errors = vec![
        counter(&[("err_type", "redis_error")], answers(&[AnswerCode::Unavailable])),
        counter(&[("err_type", "service_error")], answers(&mistakes)),
    ];
    let method = [("grpc_method", "ShouldRateLimit")];
    let requests = vec![counter(&method, answers(&AnswerCode::ALL))];
    let mut times = labelled(&method);
    times.set_histogram(took);
    let [loaded, refused, shadowed] =
        [EnvoyEvent::ConfigLoaded, EnvoyEvent::ConfigRefused, EnvoyEvent::GlobalShadow]
            .map(|event| vec![counter(&[], envoy.0.events.sum(event as usize))]);
    [total, over, near, within, shadow, cached, errors, requests, vec![times], loaded, refused, shadowed]
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
