//! Arrows from the trunk to features: files of decisions that name counting on the nodes.
//!
//! A feature is one crate that the trunk never names, but for counting on the nodes. Its arrows stand in
//! `feature_arrows.txt`, one per line, and the list may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::arrows::{Krate, Module, paths, trees};
use super::none;

/// The crates of the trunk, by the names of their folders.
const TRUNK: [&str; 4] = ["core", "config", "store", "node"];

/// The modules of each feature, by crate and path. A module counts with its folder.
const FEATURES: [(&str, &[&str]); 1] = [(
    "approximate",
    &["core/approximate", "node/telemetry/approximate", "store/approximate", "store/redis/counts"],
)];

#[test]
fn the_trunk_names_features_only_where_it_is_listed() {
    let found = found();
    if std::env::var_os("UPDATE_ARROWS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operations/architecture/feature_arrows.txt");
        let text: String = found.iter().map(|arrow| format!("{arrow}\n")).collect();
        std::fs::write(path, text).unwrap();
        return;
    }
    let listed: BTreeSet<String> = include_str!("feature_arrows.txt").lines().map(str::to_owned).collect();
    let new = found.difference(&listed);
    none(new.map(|arrow| format!("{arrow}: the trunk must not name a feature")).collect());
    let gone = listed.difference(&found);
    none(gone.map(|arrow| format!("{arrow}: is gone; delete its line in feature_arrows.txt")).collect());
}

/// Each module of a feature exists: a feature that moved out leaves the table.
#[test]
fn the_modules_of_features_exist() {
    let crates = crates();
    let exists = |module: &str| {
        let (name, path) = module.split_once('/').unwrap();
        let path: Module = path.split('/').map(str::to_owned).collect();
        crates[name].has(&path)
    };
    let all = FEATURES.iter().flat_map(|(_, modules)| *modules);
    none(all.filter(|module| !exists(module)).map(|module| format!("{module} is no module")).collect());
}

/// All arrows from the trunk to a feature: `FEATURE: FROM -> TO`.
fn found() -> BTreeSet<String> {
    let crates = crates();
    let mut found = BTreeSet::new();
    for (name, krate) in &crates {
        for (module, code) in krate.codes() {
            let from = format!("{name}/{}", module.join("/"));
            if feature_of(&from).is_some() {
                continue;
            }
            for to in targets(&crates, name, module, code) {
                if let Some(feature) = feature_of(&to) {
                    found.insert(format!("{feature}: {from} -> {to}"));
                }
            }
        }
    }
    found
}

/// The modules that a file names, in its own crate and in the others of the trunk.
fn targets(crates: &BTreeMap<&str, Krate>, name: &str, module: &Module, code: &str) -> BTreeSet<String> {
    let own = paths(code).into_iter().filter_map(|path| crates[name].resolve(module, &path, 8));
    let mut targets: BTreeSet<String> = own.map(|to| format!("{name}/{}", to.join("/"))).collect();
    for (other, krate) in crates {
        let start = format!("weir_{other}::");
        for (at, _) in code.match_indices(&start) {
            for (mut path, _) in trees(&code[at..]) {
                "crate".clone_into(&mut path[0]);
                let to = krate.resolve(&Vec::new(), &path, 8);
                targets.extend(to.map(|to| format!("{other}/{}", to.join("/"))));
            }
        }
    }
    targets
}

fn feature_of(module: &str) -> Option<&'static str> {
    let is_in = |folder: &str| {
        module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    FEATURES.iter().find(|(_, modules)| modules.iter().any(|folder| is_in(folder))).map(|(name, _)| *name)
}

fn crates() -> BTreeMap<&'static str, Krate> {
    TRUNK.iter().map(|name| (*name, Krate::read(name))).collect()
}
