//! The maps: paths and names in ARCHITECTURE.md, in the READMEs and in `docs/` are those of the code, and so are the paths
//! in comments.

use std::collections::BTreeSet;

use super::manifests;
use super::none;
use super::source::{Source, read_all};

const MAPS: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "lua/README.md", "tests/README.md"];

/// Names of files in rules about all files, and of what a reader makes. An `S` stands for the name of an engine, an
/// `M` for that of a method.
const EXAMPLES: [&str; 6] = ["foo.rs", "foo/", "mod.rs", "module.rs", "PACKAGE.SERVICE.rs", "mine/"];

/// The begin of a comment, by the kind of the file.
const COMMENTS: [(&str, &str); 4] = [(".rs", "//"), (".lua", "--"), (".proto", "//"), (".sh", "#")];

const FOLDERS: [(&str, &str); 10] = [
    ("src", "rs"),
    ("crates", "rs"),
    ("tests", "rs"),
    ("tests/vectors", "json"),
    ("benches", "rs"),
    ("lua", "lua"),
    ("deploy/http", "lua"),
    ("proto", "proto"),
    ("scripts", "sh"),
    ("docs/examples", "rs"),
];

#[test]
fn what_maps_name_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| Source::new(path, &std::fs::read_to_string(root.join(path)).unwrap());
    let mut maps: Vec<Source> = MAPS.iter().map(|path| read(path)).collect();
    maps.extend(read_all("crates", "md"));
    let mut sources: Vec<Source> =
        FOLDERS.iter().flat_map(|(folder, extension)| read_all(folder, extension)).collect();
    sources.push(read("build.rs"));
    let territory = Territory::new(&sources);
    none(maps.iter().flat_map(|map| territory.missing(&map.path, &map.text)).collect());
    // Their words in backquotes are values and fields more often than types.
    let docs = read_all("docs", "md");
    none(docs.iter().flat_map(|page| territory.missing_paths(&page.path, &page.text)).collect());
    none(
        sources.iter().flat_map(|source| territory.missing_paths(&source.path, &comments(source))).collect(),
    );
}

#[test]
fn what_is_gone_is_found() {
    let sources = [Source::new("crates/a/src/b/c.rs", "struct Here;")];
    let territory = Territory::new(&sources);
    let good = "`b/c.rs`, `crates/a/`, b/, `Here::there` `Here<T>` `../a/` `crates/core/S.rs` `GET` foo.rs";
    assert!(territory.missing("map", good).is_empty(), "{:?}", territory.missing("map", good));
    for gone in ["b/d.rs", "(see c.lua)", "`b/d/`", "`Gone`", "`Gone::Here`"] {
        assert_eq!(territory.missing("map", gone).len(), 1, "{gone}");
    }
    assert!(territory.missing("crates/a/README.md", "src/b/c.rs").is_empty());
    assert_eq!(
        territory.missing("crates/d/README.md", "src/b/c.rs"),
        ["crates/d/README.md names src/b/c.rs"]
    );
    let in_comments = |path, text| territory.missing_paths(path, &comments(&Source::new(path, text)));
    assert_eq!(in_comments("x.lua", "-- Twin: src/b/c.rs. `Gone`\nlocal x = 'd.rs'").len(), 1);
    assert_eq!(in_comments("x.rs", "fn f() {\n    // As in `d.rs`.\n    include!(\"e.rs\");").len(), 1);
}

/// The table of crates/README.md and the manifests say the same.
#[test]
fn the_arrows_are_those_of_the_map() {
    let text = include_str!("../../../crates/README.md");
    let table = text.split_once("| crate | uses |\n|---|---|\n").unwrap().1.split_once("\n\n").unwrap().0;
    let mut shown = BTreeSet::new();
    for row in table.lines() {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let uses = if cells[1] == "none" { "" } else { cells[1] };
        let uses: BTreeSet<&str> = uses.split(", ").filter(|name| !name.is_empty()).collect();
        for name in cells[0].split(", ") {
            shown.insert((name.strip_prefix("weir-").unwrap_or(name), uses.clone()));
        }
    }
    let may = manifests::MAY_USE.iter().map(|(name, uses)| (*name, uses.iter().copied().collect()));
    assert_eq!(shown, may.collect());
}

/// The files that there are, and the words in them.
struct Territory<'s> {
    paths: Vec<&'s str>,
    words: BTreeSet<&'s str>,
}

impl<'s> Territory<'s> {
    fn new(sources: &'s [Source]) -> Self {
        let paths = sources.iter().map(|source| &*source.path).collect();
        let words = sources.iter().flat_map(|source| source.text.split(|letter| !is_of_a_name(letter)));
        Self { paths, words: words.collect() }
    }

    fn missing(&self, map: &str, text: &str) -> Vec<String> {
        let names = quoted(text).flat_map(names).filter(|name| !self.words.contains(name));
        let names = names.map(|gone| format!("{map} names {gone}"));
        self.missing_paths(map, text).into_iter().chain(names).collect()
    }

    fn missing_paths(&self, map: &str, text: &str) -> Vec<String> {
        let parted = |letter: char| letter.is_whitespace() || "`()[]{}|,;→".contains(letter);
        let words = text.split(parted).map(|word| word.trim_end_matches(['.', ':', '*']));
        let files = words.filter(|word| is_file(word) && !self.has_file(map, word.trim_start_matches("../")));
        let folders = quoted(text).filter(|word| is_folder(word) && !self.has_folder(word));
        files.chain(folders).map(|gone| format!("{map} names {gone}")).collect()
    }

    /// A path that begins with a folder of the top is whole, or begins at the crate of `map`. Any other is the end of one.
    fn has_file(&self, map: &str, name: &str) -> bool {
        let is_whole = FOLDERS.iter().any(|(folder, _)| name.split('/').next() == Some(folder));
        let krate = map.split('/').take(2).collect::<Vec<_>>().join("/");
        let before = |path: &&str| path.strip_suffix(name).map(str::to_owned);
        let is_it = |before: String| {
            before.is_empty() || before.strip_suffix('/').is_some_and(|folder| !is_whole || folder == krate)
        };
        is_example(name) || self.paths.iter().filter_map(before).any(is_it)
    }

    fn has_folder(&self, name: &str) -> bool {
        let name = name.trim_start_matches("../");
        let inner = format!("/{name}");
        is_example(name) || self.paths.iter().any(|path| path.starts_with(name) || path.contains(&inner))
    }
}

/// Returns the texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The lines of a source that are nothing but comments.
fn comments(source: &Source) -> String {
    let marks = COMMENTS.iter().filter(|(end, _)| source.path.ends_with(end)).map(|(_, mark)| mark);
    let of_mark = |mark| source.text.lines().map(str::trim_start).filter(move |line| line.starts_with(mark));
    marks.flat_map(of_mark).map(|line| format!("{line}\n")).collect()
}

fn is_example(path: &str) -> bool {
    EXAMPLES.contains(&path) || ["/S.", "/M.", "/F.", "/F/"].iter().any(|name| path.contains(name))
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn is_of_a_path(letter: char) -> bool {
    is_of_a_name(letter) || "./-".contains(letter)
}

fn is_file(word: &str) -> bool {
    let is_source =
        [".rs", ".lua", ".proto", ".sh"].iter().any(|end| word.len() > end.len() && word.ends_with(end));
    is_source && word.chars().all(is_of_a_path)
}

fn is_folder(word: &str) -> bool {
    word.len() > 1 && word.ends_with('/') && word.chars().all(is_of_a_path)
}

/// The names of types, traits and variants that a piece of code begins with: `ConnectionLimits::default()`.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let path = code.split(|letter: char| !is_of_a_name(letter) && letter != ':').next().unwrap_or_default();
    let is_camel = |name: &&str| {
        name.starts_with(|letter: char| letter.is_ascii_uppercase())
            && name.contains(|letter: char| letter.is_ascii_lowercase())
            && !name.contains('_')
    };
    path.split("::").filter(is_camel)
}
