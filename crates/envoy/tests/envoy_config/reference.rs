//! The files of the reference's own tests, and what its tests ask of them. The numbers are those of the
//! cases: a case without one here is about counting, and replayed against a running server.

use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::{Domains, Unit};

const FILES: [(&str, &str); 5] = [
    (
        "a.yaml",
        r#"
domain: test-domain
descriptors:
  - key: key1
    value: value1
    descriptors:
      - { key: subkey1, rate_limit: { unit: second, requests_per_unit: 5 } }
      - { key: subkey1, value: subvalue1, rate_limit: { unit: second, requests_per_unit: 10 } }
  - { key: key2, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: key2, value: value2, rate_limit: { unit: minute, requests_per_unit: 30 } }
  - { key: key2, value: value3 }
  - { key: key3, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: key4, rate_limit: { unit: day, requests_per_unit: 1, name: key4_rate_limit } }
  - key: key5
    value: value5
    rate_limit: { unit: day, requests_per_unit: 15 }
    descriptors:
      - { key: subkey5, value: subvalue5, rate_limit: { unit: day, requests_per_unit: 25 } }
  - { key: key6, rate_limit: { unlimited: true } }
"#,
    ),
    (
        "b.yaml",
        r#"
domain: w
descriptors:
  - { key: wild, value: foo*, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: noWild, value: foo, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: midWild, value: bar*b, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: multiWild, value: foo*bar*baz, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - key: nested
    value: val1
    descriptors:
      - { key: n, value: goo*, rate_limit: { unit: minute, requests_per_unit: 20 } }
"#,
    ),
    (
        "d.yaml",
        r#"
domain: st
descriptors:
  - { key: files, value: files/*, share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: files_no_share, value: files_no_share/*, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: file, value: test1, rate_limit: { unit: minute, requests_per_unit: 50 } }
  - { key: file, value: test*, share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 100 } }
"#,
    ),
    (
        "e.yaml",
        r#"
domain: rl
descriptors:
  - key: foo
    rate_limit: { unit: minute, requests_per_unit: 2 }
    descriptors:
      - { key: bar, value: banned, rate_limit: { name: banned_limit, unit: minute, requests_per_unit: 0 } }
      - { key: baz, value: shady, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 3 } }
      - { key: bay, rate_limit: { unlimited: true } }
  - { key: category, value: account, rate_limit: { unit: minute, requests_per_unit: 4, replaces: [ { name: bkthomps }, { name: fake_name } ] } }
  - { key: service, value: service_1, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
"#,
    ),
    (
        "f.yaml",
        r#"
domain: u
descriptors:
  - { key: s, rate_limit: { unit: second, requests_per_unit: 3 } }
  - { key: m, rate_limit: { unit: MINUTE, requests_per_unit: 3 } }
  - { key: h, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: d, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: w, rate_limit: { unit: week, requests_per_unit: 3 } }
  - { key: mo, rate_limit: { unit: month, requests_per_unit: 3 } }
  - { key: y, rate_limit: { unit: year, requests_per_unit: 3 } }
"#,
    ),
];

fn domains() -> Domains {
    EnvoyFiles::parse(FILES, false).unwrap_or_else(|errors| panic!("{errors}")).compile()
}

/// `requests/unit`, `unlimited` or `none`.
fn found(domains: &Domains, domain: &str, entries: &str) -> String {
    let entries = entries.split(',').filter_map(|entry| entry.split_once('='));
    let matched = domains.find(domain).and_then(|domain| domain.find(entries));
    match matched.map(|rule| &rule.limit) {
        None => "none".to_owned(),
        Some(None) => "unlimited".to_owned(),
        Some(Some(limit)) => format!("{}/{}", limit.requests_per_unit(), limit.unit().name()),
    }
}

#[test]
fn every_case_matches_what_it_matches_there() {
    let domains = domains();
    for (case, domain, entries, expected) in [
        (1, "nope", "key2=x", "none"),
        (2, "test-domain", "key1=something", "none"),
        (3, "test-domain", "key1=value1", "none"),
        (4, "test-domain", "key2=value2,subkey=subvalue", "none"),
        (5, "test-domain", "key1=value1,subkey1=x", "5/second"),
        (6, "test-domain", "key1=value1,subkey1=subvalue1", "10/second"),
        (7, "test-domain", "key2=anything", "20/minute"),
        (7, "test-domain", "key2=value2", "30/minute"),
        (7, "test-domain", "key2=value3", "none"),
        (9, "test-domain", "key4=z", "1/day"),
        (10, "test-domain", "key6=x", "unlimited"),
        (10, "test-domain", "key5=value5", "15/day"),
        (10, "test-domain", "key5=value5,subkey5=subvalue5", "25/day"),
        (10, "test-domain", "key5=value5,subkey5=other", "none"),
        (22, "rl", "foo=x,bar=banned", "0/minute"),
        (25, "w", "wild=foo1", "20/minute"),
        (25, "w", "wild=bar", "none"),
        (26, "w", "noWild=foo1", "none"),
        (27, "w", "midWild=barab", "20/minute"),
        (27, "w", "midWild=bar123b", "20/minute"),
        (27, "w", "midWild=barb", "20/minute"),
        (27, "w", "midWild=bara", "none"),
        (27, "w", "midWild=xbarb", "none"),
        (28, "w", "multiWild=foo123bar456baz", "20/minute"),
        (28, "w", "multiWild=foobarbaz", "20/minute"),
        (28, "w", "multiWild=foo123baz", "none"),
        (28, "w", "multiWild=bar456baz", "none"),
        (28, "w", "nested=val1,n=goober", "20/minute"),
        (28, "w", "nested=val1,n=foo", "none"),
        (29, "st", "files=files/a.pdf", "10/hour"),
        (30, "st", "files_no_share=files_no_share/1", "10/hour"),
        (30, "st", "file=test1", "50/minute"),
        (30, "st", "file=test12", "100/minute"),
        (51, "rl", "foo=x,bay=y", "unlimited"),
        (55, "w", "noWild=", "none"),
        (55, "test-domain", "key2=", "20/minute"),
    ] {
        assert_eq!(found(&domains, domain, entries), expected, "case {case}: {domain} [{entries}]");
    }
}

#[test]
fn what_is_said_of_a_limit_is_found_with_it() {
    let domains = domains();
    let rule = |domain: &str, entries: &[(&'static str, &'static str)]| {
        domains.find(domain).unwrap().find(entries.iter().copied()).unwrap().clone()
    };
    assert_eq!(&*rule("test-domain", &[("key4", "z")]).name, "key4_rate_limit");
    let account = rule("rl", &[("category", "account")]);
    assert_eq!(account.replaces.iter().map(|it| &**it).collect::<Vec<_>>(), ["bkthomps", "fake_name"]);
    assert!(rule("rl", &[("foo", "x"), ("baz", "shady")]).shadow_mode);
    assert!(rule("rl", &[("service", "service_1")]).quota_mode);
    // Cases 29 and 30: one counter for all that match, or one each.
    assert!(rule("st", &[("files", "files/a")]).entries[0].shared.is_some());
    assert!(rule("st", &[("files_no_share", "files_no_share/1")]).entries[0].shared.is_none());
    let units = ["s", "m", "h", "d", "w", "mo", "y"]
        .map(|key| domains.find("u").unwrap().find([(key, "x")]).unwrap().limit.as_ref().unwrap().unit());
    assert_eq!(units, Unit::ALL);
}
