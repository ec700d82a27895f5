//! `make test` leaves out every test with `long_` in its name. So `scripts/test-long.sh` must run each of them.

use std::collections::BTreeSet;

use super::source::Source;
use super::{none, read_many};

const SCRIPT: &str = include_str!("../../../scripts/test-long.sh");

#[test]
fn the_script_runs_each_of_them() {
    let sources = read_many(&[("src", "rs"), ("crates", "rs"), ("tests", "rs")]);
    assert!(long_modules(&sources).len() > 5);
    none(forgotten(&sources, SCRIPT));
}

#[test]
fn the_check_can_fail() {
    let offences = |path: &str, text: &str| forgotten(&[Source::new(path, text)], "tests long_known::");
    assert!(offences("tests/service/main.rs", "mod long_known;\n").is_empty());
    assert_eq!(offences("tests/service/main.rs", "mod long_lost;\n").len(), 1);
    assert!(offences("tests/service/long_known/one.rs", "#[test]\nfn long_wait() {}\n").is_empty());
    assert_eq!(offences("tests/service/shutdown.rs", "#[test]\nfn long_wait() {}\n").len(), 1);
    assert_eq!(offences("crates/a/src/b.rs", "    #[test]\n    fn they_belong_to_it() {}\n").len(), 1);
    assert!(offences("tests/service/shutdown.rs", "fn long_wait() {}\n").is_empty(), "it is no test");
}

/// Modules that the script does not name, and tests by whose name no module is chosen.
fn forgotten(sources: &[Source], script: &str) -> Vec<String> {
    let modules = long_modules(sources);
    let unnamed = modules.iter().filter(|module| !script.contains(&format!("{module}::")));
    let unnamed = unnamed.map(|module| format!("scripts/test-long.sh does not run {module}::"));
    let apart = sources.iter().filter(|source| !source.path.contains("/long_"));
    let tests = apart.flat_map(|source| long_tests(source).map(move |test| (&source.path, test)));
    let tests = tests.map(|(path, test)| format!("{path}: no part of scripts/test-long.sh runs {test}"));
    unnamed.chain(tests).collect()
}

/// Tests with `long_` in their names, if only by chance, as in "belong to".
fn long_tests(source: &Source) -> impl Iterator<Item = &str> {
    let lines = source.text.lines().map(str::trim);
    let pairs = lines
        .clone()
        .zip(lines.skip(1))
        .filter(|(attribute, _)| attribute.starts_with("#[") && attribute.contains("test"));
    let functions = pairs.map(|(_, line)| line.strip_prefix("async ").unwrap_or(line));
    let names = functions.filter_map(|line| line.strip_prefix("fn ")?.split('(').next());
    names.filter(|name| name.contains("long_"))
}

/// Modules whose names begin with `long_`.
fn long_modules(sources: &[Source]) -> BTreeSet<&str> {
    let lines = sources.iter().flat_map(|source| source.text.lines());
    let named = lines.filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'));
    named.filter(|name| name.starts_with("long_")).collect()
}
