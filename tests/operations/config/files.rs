//! The file as a whole: reading it, its syntax, its bounds.

use std::io::Write as _;

use weir_config::{Config, ConfigOverrides, MAX_ERRORS, MAX_FILE};

use super::{STRATEGIES, accepted, parse, refused, section};

#[test]
fn a_file_is_loaded_and_remembered() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(STRATEGIES.as_bytes()).unwrap();
    let config = Config::load(file.path(), &ConfigOverrides::default()).unwrap();
    assert_eq!(config.sources, [file.path()]);
    assert_eq!(config.rules.strategies().len(), 1);
}

#[test]
fn a_file_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("weir.yaml");
    let errors = Config::load(&missing, &ConfigOverrides::default()).unwrap_err();
    let start = format!("{}: cannot be read: ", missing.display());
    assert!(errors.to_string().starts_with(&start), "{errors}");
    assert_eq!(errors.errors().len(), 1, "nothing else is known of it");
}

#[test]
fn bytes_that_are_no_text() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"server: {}\nst\xc3\xb6re\xff: {}").unwrap();
    let errors = Config::load(file.path(), &ConfigOverrides::default()).unwrap_err();
    assert_eq!(errors.to_string(), format!("{}:2:6: is not UTF-8 from here on", file.path().display()));
}

#[test]
fn sizes_are_bounded() {
    let padded = |size: usize| format!("{}{STRATEGIES}", "\n".repeat(size - STRATEGIES.len()));
    accepted(&padded(MAX_FILE));
    let too_large =
        "weir.yaml: is larger than 16777216 bytes (16 MiB), which is the most a configuration has";
    assert_eq!(parse(&padded(MAX_FILE + 1)).unwrap_err(), too_large);

    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(padded(MAX_FILE + 1).as_bytes()).unwrap();
    let errors = Config::load(file.path(), &ConfigOverrides::default()).unwrap_err().to_string();
    assert!(errors.ends_with("which is the most a configuration has"), "{errors}");

    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(parse(&nested(64)).unwrap_err(), "weir.yaml:1:1: must be a mapping of keys, not a list");
    let errors = parse(&nested(65)).unwrap_err();
    assert!(errors.ends_with("weir.yaml:1:65: lists and mappings nest at most 64 deep"), "{errors}");

    let values = |count: usize| format!("[{}]", "a,".repeat(count - 1));
    assert_eq!(parse(&values(1_000_000)).unwrap_err().lines().count(), 1);
    let errors = parse(&values(1_000_001)).unwrap_err();
    let too_many = ":1:2000000: a configuration has at most 1000000 values, lists and mappings";
    assert!(errors.ends_with(too_many), "{errors}");
}

/// A file of nonsense must not fill a log, in lines or in length.
#[test]
fn errors_are_bounded() {
    let unknown: String = (0..MAX_ERRORS + 5).map(|index| format!("k{index}: x\n")).collect();
    let errors = parse(&section(&unknown)).unwrap_err();
    assert_eq!(errors.lines().count(), MAX_ERRORS + 1);
    assert_eq!(errors.lines().last(), Some("weir.yaml: 5 more mistakes are not shown"));

    let long = "k".repeat(1000);
    for text in [
        format!("server: {{ workers: {long} }}"),
        format!("{long}: {{}}"),
        format!("resources: [{{ match: x, strategy: {long} }}]"),
    ] {
        let errors = parse(&section(&text)).unwrap_err();
        assert!(errors.contains(&"k".repeat(64)) && !errors.contains(&"k".repeat(65)), "{errors}");
    }
}

#[test]
fn a_file_without_strategies_says_what_to_add() {
    let help = "no strategy is configured; add a `strategies:` section, such as strategies: { mine: { \
                limits: [{ name: each, per: [consumer], token_bucket: { rate: 10/s } }] } }";
    for (text, place) in [
        ("", "1:1: "),
        ("# a comment\n", "1:1: "),
        ("---\n", "2:1: "),
        ("\nserver: {}", "2:1: "),
        ("strategies:", "1:1: strategies: "),
        ("strategies: {}", "1:13: strategies: "),
    ] {
        refused(&[(text, &format!("{place}{help}"))], str::to_owned);
    }
    let advice = help.split_once("such as ").unwrap().1;
    accepted(advice);
}

/// Everything before a syntax error is checked all the same. Nothing is called missing that may only not have been
/// read.
#[test]
fn syntax_errors_have_a_place() {
    refused(
        &[
            ("- a", "1:1: must be a mapping of keys, not a list"),
            ("text", "1:1: must be a mapping of keys, not a single value"),
            (
                "messages: { never: no }\nserver: b: c",
                "2:9: server: must be a mapping of keys, not a single value\n\
                 2:10: not valid YAML: mapping values are not allowed in this context",
            ),
            (
                "server: { workers: x }\nresources: [{ match: x, strategy: later },\nstore: [",
                "1:20: server.workers: \"x\" is not a whole number of at least 0\n\
                 3:1: not valid YAML: invalid indentation in flow construct",
            ),
            // Only the end of the list is unknown: its first limit lacks its scope for certain.
            (
                "strategies:\n  a:\n    limits:\n      - { name: l, uniform: { interval: 1 } }\n      - { name: m\n",
                "4:9: strategies.a.limits[0].per: is missing; say what has a counter of its own, such as \
                 [resource, consumer]\n\
                 4:41: strategies.a.limits[0].uniform.interval: \"1\" has no unit; write one of us, ms, s, m, h, \
                 d, w after it, such as 10s\n\
                 6:1: not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'",
            ),
        ],
        str::to_owned,
    );
}

#[test]
fn only_plain_yaml_is_taken() {
    refused(
        &[
            ("store: &x {}", "1:8: anchors are not supported; put text that begins with & in quotes"),
            ("store: !y {}", "1:8: tags are not supported; put text that begins with ! in quotes"),
            (
                "server: &x {}\nstore: *x",
                "1:9: anchors are not supported; put text that begins with & in quotes\n\
                 2:8: aliases are not supported; put text that begins with * in quotes",
            ),
            ("a\u{7}: b", "1:2: a control character cannot stand in a configuration"),
        ],
        section,
    );
    refused(
        &[
            (
                "store: *",
                "1:8: not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or \
                 numeric character; put text that begins with * or & in quotes",
            ),
            ("store: {}\n---\na: b", "2:1: a second document begins here; a configuration is one document"),
        ],
        str::to_owned,
    );
    // The parser would take this for the end of the file, and what follows would not be seen.
    let hidden = format!("{STRATEGIES}\n\0server: 5");
    refused(&[(&hidden, "2:1: a control character cannot stand in a configuration")], str::to_owned);
}

#[test]
fn harmless_variants_of_writing_are_taken() {
    accepted(&format!("\u{feff}{STRATEGIES}"));
    accepted(&format!("---\n{STRATEGIES}\n...\n"));
    accepted(&section("server:\r\n  workers: 1\r\n"));
    accepted(&section("'server': { \"workers\": 1 } # one"));
    accepted(&section("server: {\n  workers: 1,\n}"));
}
