//! The map of the tests: each module of the three binaries stands in the table of its area in tests/README.md, and each
//! binary of a feature in the table of features.

use std::collections::BTreeSet;

use super::none;
use super::source::read_all;

const MAP: &str = include_str!("../../README.md");

/// Each area, and the file that lists its modules.
const AREAS: [(&str, &str); 3] = [
    ("semantics", include_str!("../../semantics/main.rs")),
    ("service", include_str!("../../service/main.rs")),
    ("operations", include_str!("../main.rs")),
];

/// Servers and clients for the other modules; it has no tests.
const SUPPORT: &str = "support";

#[test]
fn every_module_stands_in_the_map() {
    none(AREAS.iter().flat_map(|(area, main)| differences(area, main, MAP)).collect());
}

#[test]
fn every_feature_stands_in_the_map() {
    let mains = read_all("crates", "rs").into_iter().map(|source| source.path);
    let names: Vec<String> = mains
        .filter_map(|path| Some(path.strip_suffix("/tests/main.rs")?.strip_prefix("crates/")?.to_owned()))
        .collect();
    assert!(names.len() > 2, "{names:?}");
    let mapped = mapped("The features", MAP);
    none(names.into_iter().filter(|name| !mapped.contains(name)).collect());
}

#[test]
fn a_difference_is_found() {
    let map = "## a: b\n| module | what |\n|---|---|\n| `one` | `x` |\n| `two` (`long_`) | |\n\n## c: d\n| `three` | |\n";
    let found = |main| differences("a", main, map);
    assert!(found("mod one;\nmod long_two;\nmod support;\n").is_empty());
    assert_eq!(found("mod one;\nmod long_two;\nmod three;\n"), ["the map of a lacks `three`"]);
    assert_eq!(found("mod one;\n"), ["the map of a names `long_two`, which is no module"]);
    assert_eq!(found("mod one;\nmod two;\n").len(), 2, "a module that takes long is marked");
}

fn differences(area: &str, main: &str, map: &str) -> Vec<String> {
    let modules = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let modules: BTreeSet<String> = modules.filter(|name| *name != SUPPORT).map(str::to_owned).collect();
    let mapped = mapped(area, map);
    let lacking = modules.difference(&mapped).map(|name| format!("the map of {area} lacks `{name}`"));
    let gone = mapped.difference(&modules);
    let gone = gone.map(|name| format!("the map of {area} names `{name}`, which is no module"));
    lacking.chain(gone).collect()
}

/// The modules in the first column of an area's table. The mark "(`long_`)" behind the names of a row is a part of them.
fn mapped(area: &str, map: &str) -> BTreeSet<String> {
    let title = format!("## {area}: ");
    let section = map.lines().skip_while(|line| !line.starts_with(&title)).skip(1);
    let rows = section.take_while(|line| !line.starts_with("## "));
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split('|').next());
    let names = cells.flat_map(|cell| {
        let (names, mark) = match cell.split_once(" (`long_`)") {
            Some((names, _)) => (names, "long_"),
            None => (cell, ""),
        };
        names.split(", ").map(move |name| format!("{mark}{}", name.trim().trim_matches('`')))
    });
    names.collect()
}
