//! `envoy.rules`: what files and control planes cannot say of a rule.

use weir::features;
use weir_config::Config;
use weir_core::strategy::FailurePolicy;
use weir_envoy::files::{EnvoyFiles, EnvoyFolder, EnvoySource, FilesPoll};
use weir_envoy::rules::{Domains, Kind, RateLimit, Unit};
use weir_envoy::settings::EnvoyConfig;
use weir_units::Micros;

use crate::support::scratch;

const FILE: &str = "domain: d
descriptors:
  - key: route
    value: one
    descriptors:
      - { key: rule-0-match-0, value: rule-0-match-0, rate_limit: { unit: hour, requests_per_unit: 10 } }
      - { key: rule-1-match-0, rate_limit: { unit: hour, requests_per_unit: 20 } }
      - { key: 'a,b', value: 'c=d', rate_limit: { unit: minute, requests_per_unit: 30 } }
      - { key: own, rate_limit: { unit: day, requests_per_unit: 40, algorithm: sliding_log } }
      - { key: free, rate_limit: { unlimited: true } }
";

/// A rule of a domain of `all_or_none` that would be charged by a denied request, or not by the store.
#[test]
fn rules_that_cannot_be_charged_together_are_refused() {
    let laid_over = |rule: &str, rules: &str| {
        let folder = scratch::dir("together-");
        let file = |domain: &str| format!("domain: {domain}\ndescriptors:\n  - {{ key: k, {rule} }}\n");
        for domain in ["d", "other"] {
            std::fs::write(folder.path().join(format!("{domain}.yaml")), file(domain)).unwrap();
        }
        let text = format!(
            "store: {{ redis: {{ nodes: [redis://localhost] }} }}
envoy: {{ config: /x, all_or_none: [{{ domain: d, by: [] }}], rules: [{rules}] }}"
        );
        let config = Config::parse(&text, "weir.yaml", &features::overrides()).unwrap();
        let config = EnvoyConfig::from_config(&config);
        let folder = EnvoyFolder::from(folder.path()).with_overlay(config.rules);
        EnvoyFiles::load(folder, false).map(|_| ()).map_err(|errors| errors.to_string())
    };
    let limit = "rate_limit: { unit: hour, requests_per_unit: 9 }";
    assert_eq!(laid_over(limit, ""), Ok(()));
    for (rule, rules, reason) in [
        (
            "rate_limit: { unit: hour, requests_per_unit: 9, count_rejected: true }",
            "",
            "`count_rejected` charges",
        ),
        (limit, "{ domain: d, path: k, count_rejected: true }", "`count_rejected` charges"),
        (limit, "{ domain: d, path: k, approximate: { max_over: 4, nodes: 2 } }", "`approximate` counts"),
        (
            limit,
            "{ domain: d, path: k, on_store_failure: { local: { share: 1/2 } } }",
            "`on_store_failure: local` decides",
        ),
        ("quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 9 }", "", "`quota_mode` denies"),
    ] {
        let error = laid_over(rule, rules).unwrap_err();
        let expected = "domain \"d\", rule `k`: the domain is in envoy.all_or_none, where this cannot be: ";
        assert!(error.contains(expected) && error.contains(reason), "{error}");
        assert!(!error.contains("\"other\""), "{error}");
    }
}

fn config(rules: &str) -> Result<EnvoyConfig, String> {
    let text = format!("envoy: {{ config: /x, rules: [{rules}] }}");
    let config = Config::parse(&text, "weir.yaml", &features::overrides());
    config.map(|config| EnvoyConfig::from_config(&config)).map_err(|errors| errors.to_string())
}

/// Limits by the last part of their paths.
type Limits = Vec<(String, RateLimit)>;

/// The limits of the file under these entries, by the last part of their paths; or the mistakes.
fn laid_over(rules: &str) -> Result<(Limits, Vec<String>), String> {
    let folder = scratch::dir("overlay-");
    std::fs::write(folder.path().join("d.yaml"), FILE).unwrap();
    let overlay = config(rules)?.rules;
    let folder = EnvoyFolder::from(folder.path()).with_overlay(overlay);
    let files = EnvoyFiles::load(folder, false).map_err(|errors| errors.to_string())?;
    let warnings = files.warnings.clone();
    let limits = files.compile();
    let limits = limits.rules().iter().filter_map(|rule| {
        let limit = rule.limit.clone()?;
        Some((rule.label(&[]).rsplit_once("one,")?.1.to_owned(), limit))
    });
    Ok((limits.collect(), warnings))
}

fn limit_of(limits: &[(String, RateLimit)], label: &str) -> RateLimit {
    limits.iter().find(|(name, _)| name.starts_with(label)).unwrap_or_else(|| panic!("{label}")).1.clone()
}

#[test]
fn an_entry_changes_how_rules_count() {
    let (limits, warnings) = laid_over(
        "{ domain: d, path: 'route=one,rule-0-match-0=rule-0-match-0', algorithm: token_bucket, burst: 7, \
           on_store_failure: allow }, \
         { domain: d, path: 'route=*,rule-*', unit_multiplier: 3, count_rejected: true, bill: true, max_debt: 5 }, \
         { domain: d, path: 'route=one,\"a,b\"=\"c=d\"', algorithm: sliding_window }, \
         { domain: other, path: '*', bill: false }, \
         { domain: d, path: 'route=two', bill: false }",
    )
    .unwrap();
    let first = limit_of(&limits, "rule-0");
    assert_eq!((first.kind(), first.requests_per_unit()), (Kind::Bucket { burst: 7 }, 10));
    assert_eq!(first.strategy().on_store_failure(), FailurePolicy::Allow);
    assert_eq!(first.unit_multiplier(), 1, "only the most specific entry counts");
    let second = limit_of(&limits, "rule-1");
    assert_eq!(second.kind(), Kind::FixedWindow { count_rejected: true });
    assert_eq!((second.unit_multiplier(), second.bills(), second.own_max_debt()), (3, true, Some(Some(5))));
    assert_eq!(limit_of(&limits, "\"a,b\"").kind(), Kind::SlidingWindow);
    assert_eq!(limit_of(&limits, "own").kind(), Kind::SlidingLog { count_rejected: false });
    assert_eq!(
        warnings,
        [
            "envoy.rules: \"*\" of the domain \"other\" matches no rule",
            "envoy.rules: \"route=two\" of the domain \"d\" matches no rule"
        ]
    );
}

#[test]
fn what_does_not_fit_a_rule_is_a_mistake() {
    for (rule, reason) in [
        (
            "path: 'route=one,own', algorithm: gcra",
            "its file sets `algorithm` too; remove it in one of the two places",
        ),
        ("path: 'route=one,free', bill: true", "it is unlimited, so there is nothing to count"),
        (
            "path: 'route=one,rule-1-match-0', burst: 3",
            "burst is for token_bucket, gcra, leaky_bucket and interval_refill",
        ),
        (
            "path: 'route=one,rule-1-match-0', algorithm: gcra, count_rejected: true",
            "count_rejected is for fixed_window and sliding_log",
        ),
        (
            "path: 'route=one,rule-1-match-0', algorithm: gcra, max_debt: 3",
            "max_debt is for rules that bill; this one has no `bill: true`",
        ),
        ("path: 'route=one,rule-1-match-0', unit_multiplier: 0", "unit_multiplier is out of bounds: "),
    ] {
        let errors = laid_over(&format!("{{ domain: d, {rule} }}")).unwrap_err();
        let expected = "envoy.rules: domain \"d\", rule `route=one,";
        assert!(errors.starts_with(expected) && errors.contains(reason), "{rule}: {errors}");
    }
}

#[test]
fn mistakes_of_entries_are_found_without_rules() {
    for (rules, reason) in [
        ("{ domain: d, bill: true }", "path: is missing"),
        ("{ path: a, bill: true }", "domain: is missing"),
        ("{ domain: d, path: a }", "changes nothing"),
        ("{ domain: d, path: a, bill: true, max_debt: lots }", "whole number of at least 0, or `unlimited`"),
        ("{ domain: d, path: 'a,', bill: true }", "an element is empty"),
        ("{ domain: d, path: 'a', algorithm: leaky_queue }", "\"leaky_queue\" is not one of fixed_window, "),
        ("{ domain: d, path: a, on_store_failure: local }", "`local` needs the share of each limit"),
        (
            "{ domain: d, path: a, on_store_failure: { local: { share: 1/2 } } }",
            "is for store.redis: the memory store is in this process already",
        ),
        (
            "{ domain: d, path: a, approximate: { max_over: 9, nodes: 2 } }",
            "approximate: is for store.redis: a node with the memory store shares its counters with no other",
        ),
        ("{ domain: d, path: a, approximate: true }", "approximate: must be a mapping"),
        ("{ domain: d, path: a, approximate: { nodes: 2 } }", "approximate.max_over: is missing"),
        (
            "{ domain: d, path: a, approximate: { max_over: 9, nodes: 1, sync: 1ms, x: 1 } }",
            "approximate.nodes: 1 is out of bounds",
        ),
        (
            "{ domain: d, path: 'a,*', bill: true }, { domain: d, path: '*,b', bill: true }",
            "`a,*` and `*,b` match the same rules, and neither is more specific",
        ),
        (
            "{ domain: d, path: 'a', bill: true }, { domain: d, path: '\"a\"', burst: 1 }",
            "match the same rules",
        ),
    ] {
        let errors = config(rules).unwrap_err();
        assert!(errors.contains(reason), "{rules}: {errors}");
    }
    assert!(config("{ domain: d, path: 'a,*', bill: true }, { domain: d, path: 'a,b', bill: true }").is_ok());
    assert!(config("{ domain: d, path: '*', bill: true }, { domain: e, path: '*', bill: true }").is_ok());
}

/// The rules of the file, without that which is unlimited, under these entries on Redis.
fn on_redis(entry: &str) -> Result<Domains, String> {
    let text = format!(
        "store: {{ redis: {{ nodes: [redis://a] }} }}\nenvoy: {{ config: /x, rules: [{{ domain: d, {entry} }}] }}"
    );
    let config = Config::parse(&text, "weir.yaml", &features::overrides());
    let config = config.map_err(|errors| errors.to_string())?;
    let folder = scratch::dir("overlay-");
    let file = FILE.replace("      - { key: free, rate_limit: { unlimited: true } }\n", "");
    std::fs::write(folder.path().join("d.yaml"), file).unwrap();
    let folder = EnvoyFolder::from(folder.path()).with_overlay(EnvoyConfig::from_config(&config).rules);
    let files = EnvoyFiles::load(folder, false).map_err(|errors| errors.to_string())?;
    Ok(files.compile())
}

/// Nodes count rules on their own, within the bound of the entry. What they cannot count is a mistake.
#[test]
fn an_entry_lets_nodes_count_on_their_own() {
    const NUMBERS: &str = "approximate: { max_over: 9, nodes: 4, sync: 50ms }";
    let failure = "on_store_failure: { local: { share: 1/2 } }";
    let domains = on_redis(&format!("path: 'route=one,rule-*', max_debt: 7, {failure}, {NUMBERS}")).unwrap();
    let counted: Vec<_> = domains.rules().iter().filter_map(|rule| rule.limit.as_ref()).collect();
    assert_eq!(counted.len(), 4);
    for limit in &counted {
        let (strategy, is_hour) = (limit.strategy(), limit.unit() == Unit::Hour);
        assert_eq!(strategy.approximate().is_some(), is_hour, "{limit:?}");
        assert_eq!(strategy.local().is_some(), is_hour);
        let Some(rule) = strategy.approximate() else { continue };
        assert_eq!(
            (rule.bound.share(), rule.bound.window(), rule.sync),
            (3, Micros::from_secs(3600), Micros(50_000))
        );
        assert_eq!(limit.own_max_debt(), Some(Some(7)));
    }
    assert_eq!(domains.approximate().len(), 1, "both have the same bound, so they share its places");
    let kind = "approximate: `approximate` is for a strategy of exactly one limit, which is a fixed_window";
    for (entry, reason) in [
        ("path: 'route=one,own'", kind),
        ("path: 'route=one,rule-1*', algorithm: token_bucket", kind),
        ("path: 'route=one,rule-1*', algorithm: sliding_window", kind),
        ("path: 'route=one,rule-1*', count_rejected: true", kind),
    ] {
        let errors = on_redis(&format!("{entry}, {NUMBERS}")).unwrap_err();
        assert!(errors.contains(reason), "{entry}: {errors}");
    }
    for (numbers, reason) in [
        ("{ max_over: 10, nodes: 2 }", "which must be less than the limit of 10"),
        ("{ max_over: 9, nodes: 20 }", "`max_over` is 9; with 20 nodes it must be from 19 to 2^52"),
    ] {
        let errors = on_redis(&format!("path: 'route=one,rule-0*', approximate: {numbers}")).unwrap_err();
        assert!(errors.contains("rule `route=one,rule-0-match-0=rule-0-match-0`: approximate: "), "{errors}");
        assert!(errors.contains(reason), "{errors}");
    }
}

/// A node by itself has a part of each limit. It must be one that the limit can have.
#[test]
fn an_entry_lets_the_node_decide_by_itself() {
    let under = |share: &str| {
        on_redis(&format!(
            "path: 'route=one,*', on_store_failure: {{ local: {{ share: {share}, when_full: allow }} }}"
        ))
    };
    let domains = under("1/2").unwrap();
    let limits: Vec<_> = domains.rules().iter().filter_map(|rule| rule.limit.clone()).collect();
    assert_eq!(limits.len(), 4);
    for limit in limits {
        let local = limit.strategy().local().expect("it decides by itself");
        let part = local.strategy().algorithms()[0].limit();
        assert_eq!(part, u64::from(limit.requests_per_unit()) / 2);
    }
    let errors = under("1/50").unwrap_err();
    assert!(errors.contains("on_store_failure: ") && errors.contains("is 0 at a share of 1/50"), "{errors}");
}

/// A domain whose rules an entry does not fit is refused alone.
#[test]
fn a_mistake_concerns_its_domain() {
    let folder = scratch::dir("overlay-");
    std::fs::write(folder.path().join("d.yaml"), FILE).unwrap();
    std::fs::write(folder.path().join("e.yaml"), FILE.replace("domain: d", "domain: e")).unwrap();
    let overlay = config("{ domain: d, path: 'route=one,*', burst: 1 }").unwrap().rules;
    let folder = EnvoyFolder::from(folder.path()).with_overlay(overlay);
    assert!(EnvoySource::open(folder.clone(), false, false).is_err());
    let (source, polled) = EnvoySource::open(folder, false, true).unwrap();
    let FilesPoll::Partly { refused, .. } = polled else { panic!("{polled:?}") };
    assert_eq!((refused.len(), refused[0].name.as_str()), (1, "d"));
    assert!(source.current().load().find("e").is_some());
}
