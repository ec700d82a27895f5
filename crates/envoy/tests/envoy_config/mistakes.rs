//! Every mistake of a file, in the words that users of the reference search for.

use weir_envoy::files::EnvoyFiles;

use super::{accepted, parse};

/// Each file is refused with exactly these lines, written without the name of the file.
fn refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let expected: Vec<String> = expected.lines().map(|line| format!("f.yaml: {line}")).collect();
        match parse(text) {
            Ok(_) => panic!("{text}\nis accepted"),
            Err(errors) => assert_eq!(errors, expected.join("\n"), "\nof {text}"),
        }
    }
}

/// A file of one descriptor, which stands in line 3.
fn descriptor(text: &str) -> String {
    format!("domain: d\ndescriptors:\n  - {text}")
}

/// A file of one limit, whose mapping begins in line 4, column 17.
fn limit(text: &str) -> String {
    format!("domain: d\ndescriptors:\n  - key: k\n    rate_limit: {text}")
}

#[test]
fn whole_files() {
    refused(&[
        ("", "config file cannot have empty domain"),
        ("descriptors: []", "config file cannot have empty domain (line 1, column 1)"),
        ("domain: ''", "config file cannot have empty domain (line 1, column 9)"),
        ("domain:", "config file cannot have empty domain (line 1, column 1)"),
        (
            "- a",
            "error loading config file: yaml: unmarshal errors: line 1: cannot unmarshal !!seq into map[interface \
             {}]interface {} (line 1, column 1)",
        ),
        (
            "domain: [a]",
            "error loading config file: yaml: unmarshal errors: line 1: cannot unmarshal !!seq into string (line \
             1, column 9)\n\
             config error, yaml file contains list of type other than map: a (line 1, column 10)",
        ),
    ]);
    let errors = parse("domain: d\n\tx: 1").unwrap_err();
    assert!(errors.starts_with("f.yaml: error loading config file: yaml: not valid YAML: "), "{errors}");
}

#[test]
fn keys() {
    refused(&[
        (
            "domain: d\ndescriptors:\n  - key: k\n    ratelimit: { unit: minute }",
            "config error, unknown key 'ratelimit'; did you mean 'rate_limit'? (line 4, column 5)",
        ),
        ("domain: d\nzebra: 1", "config error, unknown key 'zebra' (line 2, column 1)"),
        ("domain: d\n0.25: 1", "config error, key is not of type string: 0.25 (line 2, column 1)"),
        ("domain: d\nyes: 1", "config error, key is not of type string: true (line 2, column 1)"),
        ("domain: d\n~: 1", "config error, key is not of type string: <nil> (line 2, column 1)"),
        (
            "domain: d\ndescriptors:\n  - a\n  - b",
            "config error, yaml file contains list of type other than map: a (line 3, column 5)\n\
             config error, yaml file contains list of type other than map: b (line 4, column 5)",
        ),
        (
            "domain: d\ndescriptors: [ { key: k, value: 0.25 } ]",
            "error checking config: 0.25 is a number with a fraction; put text in quotes (line 2, column 33)",
        ),
        (
            "domain: d\ndomain: e",
            "config error, key 'domain' is given twice; the first is at line 1, column 1 (line 2, column 1)",
        ),
    ]);
    accepted(&descriptor("{ key: k, value: '0.25', metadata: { 0.25: 0.5, a: [1, b, [c]] } }"));
}

#[test]
fn descriptors() {
    let cases = [
        ("{ value: v }", "descriptor has empty key (line 3, column 5)"),
        ("{ key: '' }", "descriptor has empty key (line 3, column 5)"),
        (
            "{ key: k, value: v }\n  - { key: k, value: v }",
            "duplicate descriptor composite key 'd.k_v' (line 4, column 5)",
        ),
        (
            "{ key: a, descriptors: [ { key: b }, { key: b } ] }",
            "duplicate descriptor composite key 'd.a.b' (line 3, column 42)",
        ),
        (
            "{ key: k, value: v, share_threshold: true }",
            "share_threshold can only be used with wildcard values (containing '*'), but found key 'k_v' (line 3, \
             column 25)",
        ),
        (
            "{ key: k, shadow_mode: 'true' }",
            "error loading config file: yaml: unmarshal errors: line 3: cannot unmarshal !!str `true` into bool \
             (line 3, column 28)",
        ),
        (
            "{ key: k, value: a, value_regex: b }",
            "config error, a descriptor has one of value, value_cidr and value_regex; `value_regex` stands beside \
             `value` (line 3, column 25)",
        ),
        (
            "{ key: k, value_cidr: [10.0.0.1/8, x, 10.0.0.0/33] }",
            "value_cidr \"10.0.0.1/8\": it has bits set behind its prefix; write 10.0.0.0/8 (line 3, column 28)\n\
             value_cidr \"x\": it is no network; write an address and the length of its prefix, such as 10.0.0.0/8 \
             (line 3, column 40)\n\
             value_cidr \"10.0.0.0/33\": the length of its prefix must be at most 32 (line 3, column 43)",
        ),
        (
            "{ key: k, value_cidr: [] }",
            "value_cidr has 0 networks: it must be from 1 to 1000 (line 3, column 27)",
        ),
        (
            "{ key: k, value_regex: 'a)(b' }",
            "value_regex \"a)(b\": error: unopened group (line 3, column 28)",
        ),
        (
            "{ key: k, value_regex: '(\\w{200}){200}' }",
            "value_regex \"(\\\\w{200}){200}\": error: compiled, it would take more than 1048576 bytes (line 3, \
             column 28)",
        ),
        (
            "{ key: k, burst: 5 }",
            "config error, key 'burst' has no effect in a descriptor; it belongs in rate_limit (line 3, column 15)",
        ),
    ];
    for (text, expected) in cases {
        refused(&[(&descriptor(text), expected)]);
    }
    // These look alike when they are joined, and are not.
    accepted(&descriptor(
        "{ key: a_b }\n  - { key: a, value: b }\n  - { key: a, value: b_c }\n  - { key: a_b, value: c }",
    ));
}

#[test]
fn limits() {
    for (text, expected) in [
        ("{ unit: foo }", "invalid rate limit unit 'foo' (line 4, column 25)"),
        ("{ unit: unknown }", "invalid rate limit unit 'unknown' (line 4, column 25)"),
        ("{ requests_per_unit: 1 }", "invalid rate limit unit '' (line 4, column 17)"),
        (
            "{ unlimited: true, unit: minute }",
            "should not specify rate limit unit when unlimited (line 4, column 42)",
        ),
        ("{ unlimited: true, burst: 5 }", "should not specify burst when unlimited (line 4, column 36)"),
        (
            "{ unit: day, replaces: [{ name: '' }, {}] }",
            "should not have an empty replaces entry (line 4, column 41)\n\
             should not have an empty replaces entry (line 4, column 55)",
        ),
        (
            "{ unit: day, name: n, replaces: [{ name: n }] }",
            "replaces should not contain name of same descriptor (line 4, column 50)",
        ),
        (
            "{ unit: day, requests_per_unit: -5 }",
            "error loading config file: yaml: unmarshal errors: line 4: cannot unmarshal !!int `-5` into uint32 \
             (line 4, column 49)",
        ),
        (
            "{ unit: day, requests_per_unit: many }",
            "error loading config file: yaml: unmarshal errors: line 4: cannot unmarshal !!str `many` into uint32 \
             (line 4, column 49)",
        ),
        (
            "{ unit: day, requests_per_unit: 4294967296 }",
            "error loading config file: yaml: unmarshal errors: line 4: cannot unmarshal !!int `4294967296` into \
             uint32 (line 4, column 49)",
        ),
        (
            "{ unit: day, requests_per_unit: 1.5 }",
            "error checking config: 1.5 is a number with a fraction; put text in quotes (line 4, column 49)",
        ),
        (
            "{ unit: day, algorithm: magic }",
            "algorithm \"magic\" is not one of fixed_window, sliding_window, sliding_log, token_bucket, gcra, \
             leaky_bucket, interval_refill (line 4, column 41)",
        ),
        (
            "{ unit: day, algorithm: leaky_queue }",
            "algorithm leaky_queue makes a call wait for its turn, and Envoy cannot hold a request; use token_bucket, \
             or gcra (line 4, column 41)",
        ),
        (
            "{ unit: day, burst: 5 }",
            "burst is for the algorithms token_bucket, gcra, leaky_bucket and interval_refill; this one is \
             fixed_window (line 4, column 30)",
        ),
        (
            "{ unit: day, algorithm: gcra, max_debt: 5 }",
            "max_debt is for rules that bill; this one has no `bill: true` (line 4, column 47)",
        ),
        (
            "{ unit: day, bill: true, max_debt: lots }",
            "max_debt is `lots`: it must be a number of hits, or `unlimited` (line 4, column 52)",
        ),
        (
            "{ unit: day, algorithm: gcra, count_rejected: true }",
            "count_rejected is for the algorithms fixed_window and sliding_log; this one is gcra (line 4, column 47)",
        ),
        (
            "{ unit: day, on_store_failure: panic }",
            "on_store_failure \"panic\" is not one of allow, deny, error (line 4, column 48)",
        ),
        (
            "{ unit: day, unit_multiplier: 0 }",
            "unit_multiplier is out of bounds: it must be at least 1 microsecond (line 4, column 47)",
        ),
        (
            "{ unit: year, unit_multiplier: 101 }",
            "unit_multiplier is out of bounds: it must be at most 100 years (line 4, column 48)",
        ),
        (
            "{ unit: day, requests_per_unit: 10001, algorithm: sliding_log }",
            "requests_per_unit is out of bounds: a log keeps an entry per call, so its limit is at most 10000; use \
             token_bucket or fixed_window above it (line 4, column 49)",
        ),
        (
            "5",
            "error loading config file: yaml: unmarshal errors: line 4: cannot unmarshal !!int `5` into \
             config.YamlRateLimit (line 4, column 17)",
        ),
    ] {
        refused(&[(&limit(text), expected)]);
    }
}

#[test]
fn one_run_tells_every_mistake_of_every_file() {
    let files = [
        ("a.yaml", "domain: a\ndescriptors:\n  - { key: k, rate_limit: { unit: foo } }\n  - { valeu: x }"),
        ("b.yaml", "domain: b\n  x: 1"),
        ("c.yaml", "domain: a"),
        ("d.yaml", "domain: d"),
    ];
    let errors = EnvoyFiles::parse(files, false).unwrap_err();
    let lines: Vec<String> = errors.errors().iter().map(ToString::to_string).collect();
    let [unit, key, unknown, syntax, twice] = lines.as_slice() else { panic!("{errors}") };
    assert_eq!(unit, "a.yaml: invalid rate limit unit 'foo' (line 3, column 35)");
    assert_eq!(key, "a.yaml: descriptor has empty key (line 4, column 5)");
    assert_eq!(
        unknown,
        "a.yaml: config error, unknown key 'valeu'; did you mean 'value'? (line 4, column 7)"
    );
    assert!(syntax.starts_with("b.yaml: error loading config file: yaml: "), "{syntax}");
    assert_eq!(twice, "c.yaml: duplicate domain 'a' in config file (line 1, column 9)");
}
