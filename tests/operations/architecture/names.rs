//! A type's name stands once in the workspace, so that a reader knows which type is meant.

use std::collections::BTreeMap;

use super::manifests::MAY_USE;
use super::source::{Source, read_all};

/// Each engine has a `State`, which is always written with its module: `bucket::State`.
const EXCEPTIONS: [&str; 1] = ["State"];

/// Words that a definition of a type has before its name.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

#[test]
fn every_type_has_a_name_of_its_own() {
    let mut sources = read_all("src", "rs");
    for (krate, _) in MAY_USE.iter().filter(|(krate, _)| *krate != "weir" && *krate != "proto") {
        sources.extend(read_all(&format!("crates/{krate}/src"), "rs"));
    }
    let shared = shared_names(&sources);
    assert!(shared.is_empty(), "these names stand for several types:\n{}", shared.join("\n"));
}

#[test]
fn a_name_that_stands_twice_is_found() {
    let file = |path, text| Source::new(path, text);
    let twice = [file("src/a.rs", "pub struct Name(u8);"), file("src/b.rs", "pub(crate) enum Name {}")];
    assert_eq!(shared_names(&twice), ["Name: src/a.rs, src/b.rs"]);
    let once = [
        file("src/a.rs", "struct State;\nimpl Iterator for Name {\n    type Item = u8;\n}"),
        file("src/b.rs", "struct State;\nimpl Iterator for Other {\n    type Item = u8;\n}"),
    ];
    assert!(shared_names(&once).is_empty());
}

fn shared_names(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources {
        for name in source.text.lines().filter_map(defined) {
            places.entry(name).or_default().push(&source.path);
        }
    }
    let shared = places.into_iter().filter(|(name, places)| places.len() > 1 && !EXCEPTIONS.contains(name));
    shared.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// The type that a line defines. Associated types are indented; they belong to their traits.
fn defined(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (kind, rest) = rest.split_once(' ')?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    KINDS.contains(&kind).then_some(&rest[..end])
}
