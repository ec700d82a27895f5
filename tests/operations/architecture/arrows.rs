//! Arrows within the crates: which module of a folder uses which other one.
//!
//! A module is a file with the folder of its name. What lies in the folder may use the file and the file what lies in the
//! folder: together they are one module for those beside it. Re-exported names count as those of the module that has
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::manifests::MAY_USE;
use super::none;
use super::source::{Source, read_all};

/// A module by its path from the root of the crate: `["redis", "link"]`.
pub(super) type Module = Vec<String>;

/// The modules of a folder, and which of those beside them they use.
type Arrows = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_form_no_circles() {
    let mut found = Vec::new();
    for (name, _) in MAY_USE {
        for (folder, arrows) in Krate::read(name).folders() {
            let path = [&[name.to_owned()], &folder[..]].concat().join("/");
            found.extend(circles(&arrows).iter().map(|circle| format!("{path}: {}", circle.join(", "))));
        }
    }
    none(found);
}

/// The table of folders.md has the arrows between the folders of each crate.
#[test]
fn the_arrows_between_folders_are_those_of_the_map() {
    let text = include_str!("folders.md");
    let table = text.split_once("| folder | uses |\n|---|---|\n").unwrap().1.split_once("\n\n").unwrap().0;
    let shown: BTreeSet<&str> = table.lines().collect();
    let found: Vec<String> = MAY_USE.iter().flat_map(|(name, _)| rows(name, &Krate::read(name))).collect();
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    none(found.difference(&shown).map(|row| format!("folders.md lacks {row}")).collect());
    none(shown.difference(&found).map(|row| format!("folders.md has {row}")).collect());
}

/// A row for each folder at the top of a crate, if there are two of them or more.
fn rows(name: &str, krate: &Krate) -> Vec<String> {
    let is_folder = |module: &str| krate.sources.keys().any(|it| it.len() > 1 && it[0] == module);
    let mut folders = krate.folders();
    let Some(mut arrows) = folders.remove(&Vec::new()) else { return Vec::new() };
    arrows.retain(|module, _| is_folder(module));
    if arrows.len() < 2 {
        return Vec::new();
    }
    let row = |(folder, uses): (&String, &BTreeSet<String>)| {
        let uses: Vec<&str> = uses.iter().map(String::as_str).filter(|used| is_folder(used)).collect();
        let uses = if uses.is_empty() { "none".to_owned() } else { uses.join(", ") };
        format!("| {name}/{folder} | {uses} |")
    };
    arrows.iter().map(row).collect()
}

#[test]
fn arrows_and_circles_are_found() {
    let krate = Krate::new(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use self::b::{B, inner::I as J};\nstruct Root;"),
        ("a.rs", "mod one;\nmod two;\nuse crate::{J, Root};\nuse self::one::One;"),
        ("a/one.rs", "use super::two::Two;\nuse super::Own;"),
        ("a/two.rs", "fn f() { super::super::c::g(); crate::a::one::h() }"),
        ("b.rs", "mod inner;\nuse super::c::{self, C};"),
        ("b/inner.rs", "use super::super::a::{one::{One, *}, two};"),
        ("c.rs", "use std::self_::a; // super::a\n"),
    ]);
    let folders = krate.folders();
    let arrows = |folder: &[&str]| {
        let folder: Module = folder.iter().map(|&it| it.to_owned()).collect();
        let all = folders[&folder].iter();
        all.map(|(from, to)| format!("{from}: {}", Vec::from_iter(to.clone()).join(" "))).collect::<Vec<_>>()
    };
    assert_eq!(arrows(&[]), ["a: b c", "b: a c", "c: "]);
    assert_eq!(arrows(&["a"]), ["one: two", "two: one"]);
    assert_eq!(circles(&folders[&Vec::new()]), [["a", "b"]]);
}

/// The sources of a crate, by module.
pub(super) struct Krate {
    sources: BTreeMap<Module, Source>,
}

impl Krate {
    pub(super) fn read(name: &str) -> Self {
        let folder = if name == "weir" { "src".to_owned() } else { format!("crates/{name}/src") };
        let is_of_tests = |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/");
        let sources = read_all(&folder, "rs").into_iter().filter(|source| !is_of_tests(&source.path));
        Self {
            sources: sources.map(|source| (module_of(&source.path[folder.len() + 1..]), source)).collect(),
        }
    }

    fn new(files: &[(&str, &str)]) -> Self {
        let source = |(path, text): &(&str, &str)| (module_of(path), Source::new(path, text));
        Self { sources: files.iter().map(source).collect() }
    }

    /// Each module with its code, without comments and tests.
    pub(super) fn codes(&self) -> impl Iterator<Item = (&Module, &str)> {
        self.sources.iter().map(|(module, source)| (module, source.code.as_str()))
    }

    pub(super) fn has(&self, module: &Module) -> bool {
        self.sources.contains_key(module)
    }

    /// The arrows between the modules of each folder, by the module that the folder belongs to.
    fn folders(&self) -> BTreeMap<Module, Arrows> {
        let mut folders: BTreeMap<Module, Arrows> = BTreeMap::new();
        for (module, source) in &self.sources {
            if let Some((own, folder)) = module.split_last() {
                folders.entry(folder.to_vec()).or_default().entry(own.clone()).or_default();
            }
            for path in paths(&source.code) {
                let Some(target) = self.resolve(module, &path, 8) else { continue };
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                    let arrows = folders.entry(module[..common].to_vec()).or_default();
                    arrows.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
        folders
    }

    /// The module that has what a path in `from` names.
    pub(super) fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Module> {
        let is_absolute = ["crate", "weir"].contains(&path.first()?.as_str());
        let mut module = if is_absolute { Vec::new() } else { from.to_vec() };
        for step in path {
            match step.as_str() {
                "crate" | "self" | "weir" => {}
                "super" => {
                    module.pop();
                }
                name => {
                    let inner = [&module[..], &[name.to_owned()]].concat();
                    if self.sources.contains_key(&inner) {
                        module = inner;
                    } else {
                        let exported = depth > 0 && module != from;
                        let origin = if exported { self.export(&module, name, depth) } else { None };
                        return Some(origin.unwrap_or(module));
                    }
                }
            }
        }
        Some(module)
    }

    /// Finds the module that defines a name which `module` exports.
    fn export(&self, module: &[String], name: &str, depth: usize) -> Option<Module> {
        let code = &self.sources.get(module)?.code;
        let exports = code.match_indices("use ").filter(|(at, _)| {
            let line = code[..*at].rsplit('\n').next().unwrap_or_default().trim();
            line.starts_with("pub") || line.is_empty()
        });
        for (at, word) in exports {
            let tree = code[at + word.len()..].split(';').next().unwrap_or_default();
            for (path, known_as) in trees(tree) {
                if known_as == name && path.first().is_some_and(|first| first != name) {
                    return self.resolve_use(module, &path, depth - 1);
                }
            }
        }
        None
    }

    /// As [`Krate::resolve`], of a path that may begin with a module beside it.
    fn resolve_use(&self, from: &[String], path: &[String], depth: usize) -> Option<Module> {
        let first = path.first()?;
        let is_relative = ["crate", "self", "super"].contains(&first.as_str());
        let inner = [from, std::slice::from_ref(first)].concat();
        if is_relative || self.sources.contains_key(&inner) {
            return self.resolve(from, path, depth);
        }
        None
    }
}

fn module_of(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    match path {
        "lib" | "main" => Vec::new(),
        _ => path.split('/').map(str::to_owned).collect(),
    }
}

/// All paths in a code that begin at a module of the crate.
pub(super) fn paths(code: &str) -> Vec<Module> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let mut found = Vec::new();
    // The program's own crate is `weir` for its main.rs and what belongs to it.
    for start in ["crate::", "self::", "super::", "weir::"] {
        for (at, _) in code.match_indices(start) {
            if !code[..at].ends_with(is_of_word) {
                found.extend(trees(&code[at..]).into_iter().map(|(path, _)| path));
            }
        }
    }
    found
}

/// The paths of a tree such as `a::{b, c::{self, D as E}}`, and the names that they are known by.
pub(super) fn trees(code: &str) -> Vec<(Module, String)> {
    let mut found = Vec::new();
    tree(code, &mut Vec::new(), &mut found);
    found
}

/// Reads one tree; returns what follows it.
fn tree<'c>(code: &'c str, before: &mut Module, found: &mut Vec<(Module, String)>) -> &'c str {
    let mut code = code.trim_start();
    let depth = before.len();
    loop {
        if let Some(mut inner) = code.strip_prefix('{') {
            loop {
                inner = tree(inner, before, found).trim_start();
                inner = inner.strip_prefix(',').unwrap_or(inner).trim_start();
                if let Some(rest) = inner.strip_prefix('}') {
                    before.truncate(depth);
                    return rest;
                }
                if inner.is_empty() || !inner.starts_with(is_of_name) && !inner.starts_with(['{', '*']) {
                    before.truncate(depth);
                    return inner;
                }
            }
        }
        let end = code.find(|letter| !is_of_name(letter)).unwrap_or(code.len());
        let (name, rest) = code.split_at(end);
        if name.is_empty() {
            let rest = rest.strip_prefix('*').unwrap_or(rest);
            found.push((before.clone(), "*".to_owned()));
            before.truncate(depth);
            return rest;
        }
        if name == "self" && depth > 0 {
            found.push((before.clone(), before.last().cloned().unwrap_or_default()));
            before.truncate(depth);
            return rest;
        }
        before.push(name.to_owned());
        match rest.strip_prefix("::") {
            Some(rest) => code = rest,
            None => {
                let known_as = rest.trim_start().strip_prefix("as ");
                let known_as = known_as.map(|it| it.split(|letter| !is_of_name(letter)).next().unwrap_or(""));
                found.push((before.clone(), known_as.unwrap_or(name).to_owned()));
                let skipped = known_as.map_or(0, |it| rest.len() - rest.trim_start().len() + 3 + it.len());
                before.truncate(depth);
                return &rest[skipped..];
            }
        }
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The modules of which each uses, by whatever way, each other one.
fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut found = BTreeSet::new();
        let mut next = vec![from];
        while let Some(module) = next.pop() {
            for to in arrows.get(module).into_iter().flatten() {
                if found.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        found
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|it| (it, reached(it))).collect();
    let mut circles = BTreeSet::new();
    for (module, to) in &reached {
        if to.contains(*module) {
            let both = to.iter().filter(|other| reached.get(other).is_some_and(|it| it.contains(*module)));
            circles.insert(both.cloned().collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}
