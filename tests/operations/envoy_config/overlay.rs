//! `envoy.rules`: what files and control planes cannot say of a rule.

use weir_config::{Config, ConfigOverrides, EnvoyConfig, EnvoyFiles, EnvoyFolder, EnvoySource, Look};
use weir_core::envoy::{Kind, RateLimit};
use weir_core::strategy::FailurePolicy;

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

fn config(rules: &str) -> Result<EnvoyConfig, String> {
    let text = format!("envoy: {{ config: /x, rules: [{rules}] }}");
    let config = Config::parse(&text, "weir.yaml", &ConfigOverrides::default());
    config.map(|config| config.envoy).map_err(|errors| errors.to_string())
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

fn of(limits: &[(String, RateLimit)], label: &str) -> RateLimit {
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
    let first = of(&limits, "rule-0");
    assert_eq!((first.kind(), first.requests_per_unit()), (Kind::Bucket { burst: 7 }, 10));
    assert_eq!(first.strategy().on_store_failure(), FailurePolicy::Allow);
    assert_eq!(first.unit_multiplier(), 1, "only the most specific entry counts");
    let second = of(&limits, "rule-1");
    assert_eq!(second.kind(), Kind::FixedWindow { count_rejected: true });
    assert_eq!((second.unit_multiplier(), second.bills(), second.own_max_debt()), (3, true, Some(Some(5))));
    assert_eq!(of(&limits, "\"a,b\"").kind(), Kind::SlidingWindow);
    assert_eq!(of(&limits, "own").kind(), Kind::SlidingLog { count_rejected: false });
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
            "{ domain: d, path: a, approximate: true, bill: true }",
            "approximate: is not supported yet: Envoy's rules are counted exactly",
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

/// A node by itself has a part of each limit. It must be one that the limit can have.
#[test]
fn an_entry_lets_the_node_decide_by_itself() {
    let on_redis = |share: &str| {
        let text = format!(
            "store: {{ redis: {{ nodes: [redis://a] }} }}\nenvoy: {{ config: /x, rules: [{{ domain: d, path: 'route=one,*', \
             on_store_failure: {{ local: {{ share: {share}, when_full: allow }} }} }}] }}"
        );
        let config = Config::parse(&text, "weir.yaml", &ConfigOverrides::default()).unwrap();
        let folder = scratch::dir("overlay-");
        let file = FILE.replace("      - { key: free, rate_limit: { unlimited: true } }\n", "");
        std::fs::write(folder.path().join("d.yaml"), file).unwrap();
        let folder = EnvoyFolder::from(folder.path()).with_overlay(config.envoy.rules);
        let files = EnvoyFiles::load(folder, false).map_err(|errors| errors.to_string())?;
        Ok::<_, String>(files.compile())
    };
    let domains = on_redis("1/2").unwrap();
    let limits: Vec<_> = domains.rules().iter().filter_map(|rule| rule.limit.clone()).collect();
    assert_eq!(limits.len(), 4);
    for limit in limits {
        let local = limit.strategy().local().expect("it decides by itself");
        let part = local.strategy().algorithms()[0].limit();
        assert_eq!(part, u64::from(limit.requests_per_unit()) / 2);
    }
    let errors = on_redis("1/50").unwrap_err();
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
    let (source, look) = EnvoySource::open(folder, false, true).unwrap();
    let Look::Partly { refused, .. } = look else { panic!("{look:?}") };
    assert_eq!((refused.len(), refused[0].name.as_str()), (1, "d"));
    assert!(source.current().load().find("e").is_some());
}
