//! The content of files, and the part of it without effect.

use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::FailurePolicy;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::{Metadata, Unit};
use weir_units::Micros;

use super::{accepted, limit_of, parse};

fn number(number: f64) -> Metadata {
    Metadata::Number(number)
}

#[test]
fn every_field_has_its_place() {
    let files = accepted(
        r#"
domain: d
descriptors:
  - key: all
    value: v*
    shadow_mode: true
    quota_mode: yes
    detailed_metric: true
    value_to_metric: on
    share_threshold: true
    metadata: { text: a, "quoted": "1", flag: true, count: 0x10, part: .5, none: , list: [1, { a: b }] }
    rate_limit:
      unit: MINUTE
      requests_per_unit: 1_000
      name: n
      replaces: [ { name: a }, { name: b } ]
      unit_multiplier: 5
      on_store_failure: deny
      count_rejected: true
"#,
    );
    let expected = [
        "detailed_metric' has no effect: no metric has values of requests (line 8, column 5)",
        "value_to_metric",
    ];
    assert_eq!(files.warnings.len(), 2, "{:?}", files.warnings);
    for (warning, text) in files.warnings.iter().zip(expected) {
        assert!(warning.contains(text), "{warning}");
    }
    let domains = files.compile();
    let matched = domains.find("d").unwrap().find([("all", "value")]).unwrap();
    let rule = matched;
    assert_eq!((&*rule.path(), &*rule.name), ("d.all_v*", "n"));
    assert_eq!(rule.replaces.iter().map(|it| &**it).collect::<Vec<_>>(), ["a", "b"]);
    assert!(rule.shadow_mode && rule.quota_mode && rule.detailed_metric && rule.entries[0].value_to_metric);
    assert_eq!(matched.shared(0), Some(("all", "v*")));
    let limit = rule.limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit(), limit.unit(), limit.unit_multiplier()), (1000, Unit::Minute, 5));
    assert_eq!(limit.strategy().on_store_failure(), FailurePolicy::Deny);
    let window = Algorithm::fixed_window(1000, Micros::from_secs(300), false, true).unwrap();
    assert_eq!(limit.strategy().algorithms(), [window.with_max_debt(None)]);
    assert!(limit.bills());
    assert_eq!((limit.strategy().name(), &*limit.strategy().limits()[0].name), ("envoy", "minute.5"));

    let Some(Metadata::Map(entries)) = &rule.metadata else { panic!("{:?}", rule.metadata) };
    let entries: Vec<(&str, &Metadata)> = entries.iter().map(|(name, value)| (&**name, value)).collect();
    let inner = Metadata::Map(vec![("a".into(), Metadata::Text("b".into()))]);
    let expected = [
        ("text", Metadata::Text("a".into())),
        ("quoted", Metadata::Text("1".into())),
        ("flag", Metadata::Bool(true)),
        ("count", number(16.0)),
        ("part", number(0.5)),
        ("none", Metadata::Null),
        ("list", Metadata::List(vec![number(1.0), inner])),
    ];
    assert_eq!(entries, expected.iter().map(|(name, value)| (*name, value)).collect::<Vec<_>>());
}

#[test]
fn every_algorithm_is_the_one_it_names() {
    let day = Micros::from_secs(86_400);
    let rate = Rate { count: 10, period: day };
    for (text, expected) in [
        ("", Algorithm::fixed_window(10, day, false, false)),
        (", algorithm: fixed_window", Algorithm::fixed_window(10, day, false, false)),
        (", algorithm: sliding_window", Algorithm::sliding_window(10, day)),
        (", algorithm: sliding_log", Algorithm::sliding_log(10, day)),
        (
            ", algorithm: sliding_log, count_rejected: true",
            Algorithm::strict_log(10, day, true, Micros::ZERO),
        ),
        (", algorithm: token_bucket", Algorithm::bucket(10, rate)),
        (", algorithm: gcra, burst: 3", Algorithm::bucket(3, rate)),
        (", algorithm: leaky_bucket, burst: 20", Algorithm::bucket(20, rate)),
        (", algorithm: interval_refill, burst: 20", Algorithm::interval_refill(20, 10, day, true)),
    ] {
        let text = format!(
            "{{ domain: d, descriptors: [{{ key: k, rate_limit: {{ unit: day, requests_per_unit: 10{text} }} }}] }}"
        );
        let domains = accepted(&text).compile();
        let limit = domains.rules()[0].limit.as_ref().unwrap();
        let expected = expected.unwrap();
        // The debt of bills is at most the limit, but where denied hits count.
        let max_debt = (!expected.counts_denied()).then_some(expected.limit());
        let expected = expected.with_max_debt(max_debt);
        assert_eq!(limit.strategy().algorithms(), [expected], "{text}");
        let is_window = !text.contains("algorithm") || text.contains("fixed_window");
        assert_eq!(limit.bills(), is_window, "{text}");
    }
    // What lets nothing pass is no bucket: nothing would ever come back into it.
    let zero = "{ domain: d, descriptors: [{ key: k, rate_limit: { unit: day, algorithm: gcra } }] }";
    let domains = accepted(zero).compile();
    let never = Algorithm::fixed_window(0, day, false, false).unwrap();
    assert_eq!(
        domains.rules()[0].limit.as_ref().unwrap().strategy().algorithms(),
        [never.with_max_debt(Some(0))]
    );
}

#[test]
fn units_are_of_these_lengths() {
    for (unit, name, seconds, wire) in [
        (Unit::Second, "second", 1, 1),
        (Unit::Minute, "Minute", 60, 2),
        (Unit::Hour, "HOUR", 3_600, 3),
        (Unit::Day, "day", 86_400, 4),
        (Unit::Month, "month", 2_592_000, 5),
        (Unit::Year, "year", 31_536_000, 6),
        (Unit::Week, "week", 604_800, 7),
    ] {
        assert_eq!((unit.seconds(), unit.wire(), Unit::of_wire(wire)), (seconds, wire, Some(unit)));
        assert_eq!(Unit::named(name), Some(unit));
    }
    assert_eq!((Unit::named("fortnight"), Unit::of_wire(0), Unit::of_wire(8)), (None, None, None));
}

#[test]
fn domains_are_merged_where_that_is_wanted() {
    let limit = |key: &str, number: u32| {
        format!(
            "{{ domain: d, descriptors: [{{ key: k, value: {key}, rate_limit: {{ unit: day, requests_per_unit: {number} }} }}] }}"
        )
    };
    let (one, two, again) = (limit("a*", 1), limit("ab*", 2), limit("a*", 3));
    let merged = EnvoyFiles::parse([("1", one.as_str()), ("2", &two)], true).unwrap();
    assert_eq!((merged.count, merged.domains.len()), (2, 1));
    let domains = merged.compile();
    assert_eq!(domains.rules().len(), 2);
    // The files have an order too, and of patterns the first counts.
    assert_eq!(limit_of(&domains, "k=abc"), Some(1));
    let errors = EnvoyFiles::parse([("1", one.as_str()), ("2", &again)], true).unwrap_err();
    assert_eq!(errors.to_string(), "2: duplicate descriptor composite key 'd.k_a*' (line 1, column 28)");
    let errors = EnvoyFiles::parse([("1", one.as_str()), ("2", &two)], false).unwrap_err();
    assert_eq!(errors.to_string(), "2: duplicate domain 'd' in config file (line 1, column 11)");
}

#[test]
fn what_has_no_effect_is_said() {
    let files = accepted(
        "domain: d\ndescriptors:\n  - key: k\n    shadow_mode: true\n    quota_mode: false\n  - key: l\n    rate_limit: { unit: day, shadow_mode: true }\n",
    );
    let expected = [
        "f.yaml: key 'shadow_mode' has no effect without rate_limit beside it (line 4, column 5)",
        "f.yaml: key 'shadow_mode' has no effect in rate_limit; it belongs in a descriptor (line 7, column 30)",
    ];
    assert_eq!(files.warnings, expected);
}

/// Files with many equal limits write them once.
#[test]
fn anchors_aliases_and_merge_keys_are_followed() {
    let domains = accepted(
        r#"
domain: d
descriptors:
  - key: a
    rate_limit: &tight { unit: minute, requests_per_unit: 5 }
  - key: b
    rate_limit: *tight
  - key: c
    rate_limit: { <<: *tight, requests_per_unit: 7 }
  - key: e
    descriptors: &below
      - { key: s, rate_limit: *tight }
  - { key: f, descriptors: *below }
"#,
    )
    .compile();
    for (entries, expected) in [("a=x", 5), ("b=x", 5), ("c=x", 7), ("e=x,s=y", 5), ("f=x,s=y", 5)] {
        assert_eq!(limit_of(&domains, entries), Some(expected), "{entries}");
    }
}

/// As Windows writes files, and as other tools do.
#[test]
fn files_of_other_systems_are_read() {
    let lines = [
        "\u{feff}---",
        "domain: d",
        "descriptors:",
        "- key: k",
        "  value: !!str 0.5",
        "  rate_limit:",
        "    unit: day",
        "    requests_per_unit: 5",
        "...",
        "",
    ];
    assert_eq!(limit_of(&accepted(&lines.join("\r\n")).compile(), "k=0.5"), Some(5));
    let errors = parse("domain: !!float 0.5").unwrap_err();
    assert!(errors.contains("yaml: tags are not supported"), "{errors}");
}

/// Single values of any sort are texts where a text is meant.
#[test]
fn numbers_are_texts_where_texts_are_meant() {
    let text = "{ domain: 5, descriptors: [{ key: 010, value: true, rate_limit: { unit: day } }] }";
    let domains = accepted(text).compile();
    assert!(domains.find("5").unwrap().find([("010", "true")]).is_some());
}
