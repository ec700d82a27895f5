//! Whatever can grow has a bound, and says so when it is reached.

use std::fmt::Write as _;

use weir_config::MAX_ERRORS;
use weir_envoy::files::{EnvoyFiles, EnvoyFolder, EnvoySource, FilesPoll, MAX_ENVOY_FILE, MAX_ENVOY_FILES};
use weir_envoy::settings::EnvoyConfig;

use super::parse;
use crate::support::scratch;

#[test]
fn texts_are_bounded() {
    let long = "k".repeat(4097);
    let shown = format!("\"{}…\" is 4097 bytes long: at most 4096", "k".repeat(64));
    for (text, at) in [
        (format!("domain: {long}"), "(line 1, column 9)"),
        (format!("domain: d\ndescriptors:\n  - key: {long}"), "(line 3, column 10)"),
        (format!("domain: d\ndescriptors:\n  - key: k\n    value: {long}"), "(line 4, column 12)"),
    ] {
        assert_eq!(parse(&text).unwrap_err(), format!("f.yaml: {shown} {at}"));
    }
    // Names that control planes make of routes have 1,300 bytes and more.
    let longest = "k".repeat(4096);
    let text = format!(
        "domain: {longest}\ndescriptors:\n  - {{ key: {longest}, value: {longest}, rate_limit: {{ unit: day }} }}"
    );
    let domains = parse(&text).unwrap().compile();
    let domain = domains.find(&longest).unwrap();
    assert!(domain.find([(longest.as_str(), longest.as_str())]).is_some());
}

/// A file whose descriptors nest so deep; the deepest has a limit.
fn nested(levels: usize) -> String {
    let mut text = "domain: d\ndescriptors: ".to_owned();
    text.push_str(&"[{ key: k, descriptors: ".repeat(levels - 1));
    text.push_str("[{ key: k, rate_limit: { unit: day, replaces: [{ name: n }] } }]");
    text.push_str(&"}]".repeat(levels - 1));
    text
}

#[test]
fn files_are_bounded() {
    let padded = |size: usize| format!("domain: d{}", " ".repeat(size - "domain: d".len()));
    assert!(parse(&padded(MAX_ENVOY_FILE)).is_ok());
    let errors = parse(&padded(MAX_ENVOY_FILE + 1)).unwrap_err();
    assert_eq!(errors, "f.yaml: error loading config file: it is larger than 4194304 bytes (4 MiB)");

    let folder = scratch::dir("envoy-");
    std::fs::write(folder.path().join("large.yaml"), padded(MAX_ENVOY_FILE + 1)).unwrap();
    let errors = EnvoyFiles::load(folder.path(), false).unwrap_err().to_string();
    assert!(
        errors.ends_with("large.yaml: error loading config file: it is larger than 4194304 bytes (4 MiB)")
    );
}

#[test]
fn directories_are_bounded() {
    let folder = scratch::dir("envoy-");
    for index in 0..=MAX_ENVOY_FILES {
        std::fs::write(folder.path().join(format!("{index}.yaml")), format!("domain: d{index}")).unwrap();
    }
    let errors = EnvoyFiles::load(folder.path(), false).unwrap_err().to_string();
    assert_eq!(errors, format!("{}: has more than 1000 files", folder.path().display()));
    std::fs::remove_file(folder.path().join("0.yaml")).unwrap();
    assert_eq!(EnvoyFiles::load(folder.path(), false).unwrap().count, MAX_ENVOY_FILES);
}

/// Entries with a limit are counted, and not those that lead to them. With isolation, the files after the one that has
/// too many are counted as if it had none.
#[test]
fn rules_are_bounded_over_all_files() {
    let folder = scratch::dir("envoy-");
    let write = |domain: &str, count: usize| {
        let mut text = format!("domain: {domain}\ndescriptors:\n  - key: inner\n    descriptors:\n");
        for index in 0..count {
            let _ = writeln!(
                text,
                "      - {{ key: k{index}, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}"
            );
        }
        std::fs::write(folder.path().join(format!("{domain}.yaml")), text).unwrap();
    };
    ["a", "b", "c", "d"].into_iter().zip([2, 2, 4, 1]).for_each(|(domain, count)| write(domain, count));
    let config = |max_rules| EnvoyConfig { max_rules, ..EnvoyConfig::default() };
    let source = |max_rules| EnvoyFolder::from(folder.path()).with_config(&config(max_rules));
    assert_eq!(EnvoyFiles::load(source(9), false).unwrap().compile().rules().len(), 9);
    let expected = "c.yaml: with domain 'c' there are more than 5 rules in all domains: raise `envoy.max_rules` \
                    (line 6, column 9)";
    let errors = EnvoyFiles::load(source(5), false).unwrap_err().to_string();
    assert!(errors.ends_with(expected) && errors.lines().count() == 1, "{errors}");
    let (source, polled) = EnvoySource::open(source(5), false, true).unwrap();
    let FilesPoll::Partly { errors, refused, .. } = polled else { panic!("{polled:?}") };
    assert!(errors.to_string().ends_with(expected), "{errors}");
    let names: Vec<&str> = refused.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!((names, source.current().load().rules().len()), (vec!["c"], 5));
}

#[test]
fn depth_and_aliases_are_bounded() {
    let domains = parse(&nested(32)).unwrap().compile();
    assert!(domains.find("d").unwrap().find([("k", "v"); 32]).is_some());
    let errors = parse(&nested(33)).unwrap_err();
    assert!(errors.contains("descriptors nest at most 32 levels deep (line 2, column "), "{errors}");
    let errors = parse(&nested(70)).unwrap_err();
    assert!(errors.contains("lists and mappings nest at most 128 deep"), "{errors}");

    // A billion laughs: every line is ten of the line before.
    let mut laughs = "domain: d\nmetadata:\n  a0: &a0 [x, x]\n".to_owned();
    for level in 1..=10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        let _ = writeln!(laughs, "  a{level}: &a{level} [{before}]");
    }
    let errors = parse(&laughs).unwrap_err();
    assert!(errors.contains("at most 250000 values, lists and mappings"), "{errors}");

    // Each within the one before: deep only when they are put together.
    let mut deep = "domain: d\nmetadata:\n  a0: &a0 [x]\n".to_owned();
    for level in 1..=160 {
        let _ = writeln!(deep, "  a{level}: &a{level} [*a{}]", level - 1);
    }
    let errors = parse(&deep).unwrap_err();
    assert!(errors.contains("lists and mappings nest at most 128 deep"), "{errors}");

    let errors = parse("domain: d\nmetadata: &a { b: *a }").unwrap_err();
    assert!(errors.contains("an alias cannot stand inside of what it stands for"), "{errors}");
}

#[test]
fn errors_are_bounded() {
    let bad = "domain: d\ndescriptors: [{}, {}, {}, {}, {}, {}, {}]";
    let files = (0..MAX_ERRORS).map(|_| ("f", bad));
    let errors = EnvoyFiles::parse(files, true).unwrap_err();
    assert_eq!(errors.errors().len(), MAX_ERRORS);
    assert!(errors.to_string().ends_with("\n6000 more mistakes are not shown"));
}
